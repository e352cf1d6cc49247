"""Weights become pixels: repeated if they are few, the largest of a pixel if they are many, and a valid PNG."""

import base64
import struct
import zlib

import numpy as np

from attnlab.charts.raster import encode_png, paint

COLOURS = ("#FF0000", "#0000FF", "#C0C0C0", "white")


def test_size_sign_and_visibility_are_colours() -> None:
    pixels = paint(np.array([[1.0, 0.0], [-1.0, 0.25]]), 4, 1.0, COLOURS, is_causal=True)
    assert pixels.shape == (4, 4, 3)
    assert pixels[0, 0].tolist() == pixels[1, 1].tolist() == [255, 0, 0]
    assert pixels[0, 3].tolist() == [255, 255, 255]
    assert pixels[3, 0].tolist() == [0, 0, 255]
    assert pixels[3, 3].tolist() == [224, 96, 96]  # half way from the ground, the square root of ¼
    assert paint(np.zeros((2, 2)), 2, 1.0, COLOURS, is_causal=False)[0, 1].tolist() == [192, 192, 192]


def test_no_large_weight_is_lost_where_pixels_are_few() -> None:
    weights = np.zeros((50, 50))
    weights[31, 17], weights[3, 3] = 1.0, -1.0
    pixels = paint(weights, 5, 1.0, COLOURS, is_causal=False)
    assert pixels[3, 1].tolist() == [255, 0, 0]
    assert pixels[0, 0].tolist() == [0, 0, 255]


def test_a_png_holds_the_pixels() -> None:
    pixels = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    content = base64.b64decode(encode_png(pixels).partition(",")[2])
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", content[16:24]) == (4, 2)
    length = struct.unpack(">I", content[33:37])[0]
    rows = zlib.decompress(content[41 : 41 + length])
    assert rows == b"\0" + bytes(range(12)) + b"\0" + bytes(range(12, 24))
