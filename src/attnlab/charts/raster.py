"""Weights as pixels, for pictures of so many weights that a mark for each would be too much."""

import base64
import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]
Weights = NDArray[np.floating[Any]]


def paint(weights: Weights, side: int, most: float, colours: tuple[str, str, str, str], is_causal: bool) -> Pixels:
    """Return weights [q k] as a square of pixels [side side 3], stronger where |weight| / most is larger.

    colours: of positive and negative weights, and the ground of pairs that are visible and not. The strength is the
    square root, since the first rows, whose few keys share all the weight, would leave the others pale. Of several
    weights in one pixel the largest is shown.
    """
    positive, negative, visible, hidden = (_read_colour(colour) for colour in colours)
    num_queries, num_keys = weights.shape
    seen = np.tri(num_queries, num_keys, k=num_keys - num_queries if is_causal else num_keys)
    ground = np.where(_resize(seen, side)[..., None] > 0, visible, hidden)
    accent, strength = _colour(_resize(weights, side), most, positive, negative)
    return np.asarray(np.rint(ground + (accent - ground) * strength), dtype=np.uint8)


def tint(weights: Weights, side: int, most: float, colours: tuple[str, str]) -> Pixels:
    """Return weights [q k] as a square of pixels [side side 4] that are more opaque where |weight| / most is larger.

    The ground shows through, so that a page can have any. colours: of positive and negative weights.
    """
    accent, strength = _colour(_resize(weights, side), most, *(_read_colour(colour) for colour in colours))
    return np.asarray(np.rint(np.concatenate([accent, 255 * strength], axis=-1)), dtype=np.uint8)


def _colour(
    sizes: Weights, most: float, positive: NDArray[Any], negative: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    strength = np.sqrt(np.clip(np.abs(sizes) / most, 0, 1))[..., None]
    return np.where(sizes[..., None] < 0, negative, positive), strength


def _resize(values: NDArray[Any], side: int) -> NDArray[Any]:
    """Repeat values, or take the one with the largest size among those that meet in a pixel, along both axes."""
    for axis in (0, 1):
        count = values.shape[axis]
        if count <= side:
            values = np.take(values, np.arange(side) * count // side, axis)
        else:
            starts = np.arange(side) * count // side
            high, low = np.maximum.reduceat(values, starts, axis), np.minimum.reduceat(values, starts, axis)
            values = np.where(high >= -low, high, low)
    return values


def _read_colour(colour: str) -> NDArray[np.floating[Any]]:
    digits = "#FFFFFF" if colour == "white" else colour
    return np.array([int(digits[place : place + 2], 16) for place in (1, 3, 5)], dtype=float)


def encode_png(pixels: Pixels) -> str:
    """Return pixels [height width 3], or 4 with their opacity, as the address of a PNG, for the `url` of a mark."""
    height, width, channels = pixels.shape
    rows = b"".join(b"\0" + pixels[row].tobytes() for row in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, {3: 2, 4: 6}[channels], 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    content = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )
    return f"data:image/png;base64,{base64.b64encode(content).decode()}"
