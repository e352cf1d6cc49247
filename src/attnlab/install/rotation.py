"""How a model rotates its queries and keys, as a line writes it: measured by calling attention modules on five tokens.

Configs tell the base of a rotation, but not which channels turn with which, nor whether a layer rotates at all.
"""

import inspect
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, PreTrainedModel

from attnlab.mechanisms import PositionScheme, parse_mechanism

from .attention_modules import AttentionModule, list_forward_names
from .compat import get_attention_name, set_attention_name
from .own_positions import list_rotations
from .projections import in_width

PLACES = (0, 1, 7, 100, 1000)
"""Positions of the tokens of a measurement: the last ones show another base or a scaled rotation."""
PROBE = "attnlab_probe"


class _MeasuredError(Exception):
    """Carries queries and keys out of an attention module, before it attends."""

    def __init__(self, q: Tensor, k: Tensor, scale: float | None) -> None:
        super().__init__("measured")
        self.q, self.k, self.scale = q, k, scale


def _measure(
    module: nn.Module, q: Tensor, k: Tensor, v: Tensor, *args: Any, scaling: float | None = None, **options: Any
) -> Any:
    raise _MeasuredError(q, k, scaling)


class Rotation(NamedTuple):
    """The scheme of a line for what a layer does to its positions, or why there is none, in words.

    scale: the scale of the scores that the layer passes to its attention function, if it was measured.
    """

    scheme: str | None
    remark: str = ""
    scale: float | None = None


class MeasuredRotation(NamedTuple):
    """Queries and keys [1 h n d] before and after the rotation, and the scale of the scores."""

    pairs: tuple[tuple[Tensor, Tensor], ...]
    scale: float | None


def read_rotation(attention: AttentionModule, body: PreTrainedModel) -> Rotation | None:
    """Return how an attention module rotates queries and keys; None in a model without a rotation."""
    rotary = _find_rotary(attention, body)
    if rotary is None or not _uses_rotation(attention.module):
        return None
    settings = _find_settings(attention.module, rotary)
    kind = settings.get("rope_type", "default")
    if kind != "default":  # not measured: a dynamic one changes with the positions that it sees
        return Rotation(None, f"a rotation of type '{kind}'")
    measured = _measure_rotation(attention, rotary)
    if measured is None:
        return Rotation(None, f"a rotation ({type(rotary).__name__}) that attnlab could not measure")
    if all(torch.equal(before, after) for before, after in measured.pairs):
        return Rotation("nope", scale=measured.scale)
    base, share = (float(settings.get(name, 1.0)) for name in ("rope_theta", "partial_rotary_factor"))
    line = f"rope(base={max(base, 1.0)!r}, share={share!r})"
    scheme = parse_mechanism(f"dot | softmax | {line}").positions
    if not _explains(scheme, measured):
        remark = f"a rotation ({type(rotary).__name__}) that turns other channels, or by other angles, than rope"
        return Rotation(None, remark, measured.scale)
    return Rotation(str(scheme), scale=measured.scale)


def _uses_rotation(module: nn.Module) -> bool:
    """Tell whether a module is given a rotation, or computes one; cross-attention usually is not."""
    is_given = "position_embeddings" in inspect.signature(type(module).forward).parameters
    return is_given or any("rotary" in name for name in list_forward_names(module))


def _find_rotary(attention: AttentionModule, body: PreTrainedModel) -> nn.Module | None:
    """Return the module whose rotation an attention module uses: the nearest one in the model's tree."""
    rotations = list_rotations(body)
    named = [(name, module) for name, module in body.named_modules() if any(module is other for other in rotations)]
    place = next(name for name, module in body.named_modules() if module is attention.module).split(".")

    def count_shared(name: str) -> int:
        pairs = zip(name.split("."), place, strict=False)
        return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(name.split(".")), len(place)))

    return max(named, key=lambda item: count_shared(item[0]))[1] if named else None


def _find_settings(module: nn.Module, rotary: nn.Module) -> dict[str, Any]:
    """Return the rope settings of a layer: those of its type, if a config has several."""
    config: Any = getattr(rotary, "config", None) or getattr(module, "config", None)
    settings = dict(getattr(config, "rope_parameters", None) or {})
    inner = settings.get(_find_layer_type(module))
    settings = dict(inner) if isinstance(inner, dict) else settings
    if getattr(config, "partial_rotary_factor", None) is not None:
        settings.setdefault("partial_rotary_factor", config.partial_rotary_factor)
    return settings


def _find_layer_type(module: nn.Module) -> str:
    own = getattr(module, "layer_type", None) or getattr(module, "attention_type", None)
    types, index = getattr(getattr(module, "config", None), "layer_types", None), getattr(module, "layer_idx", None)
    return str(own or (types[index] if types and isinstance(index, int) else ""))


def _measure_rotation(attention: AttentionModule, rotary: nn.Module) -> MeasuredRotation | None:
    """Call an attention module without and with its rotation; None if it cannot be called so."""
    module: Any = attention.module
    names = inspect.signature(type(module).forward).parameters
    if attention.projections is None and not hasattr(module, "query_key_value"):
        return None
    linear: Any = module.query_key_value if attention.projections is None else attention.projections["q"].module
    if "position_embeddings" not in names:
        return None
    weight: Tensor = linear.weight
    if weight.is_meta:
        return None
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(1, len(PLACES), in_width(linear), generator=generator).to(weight)
    places = torch.tensor([PLACES], device=weight.device)
    by_type = (_find_layer_type(module),) if "layer_type" in inspect.signature(type(rotary).forward).parameters else ()
    try:
        cos, sin = rotary(x, places, *by_type)
        before = _call(module, x, (torch.ones_like(cos), torch.zeros_like(sin)), names)
        after = _call(module, x, (cos, sin), names)
    except Exception:  # code of others, which may need other inputs
        return None
    return MeasuredRotation(((before.q, after.q), (before.k, after.k)), after.scale)


def _call(module: Any, x: Tensor, rotation: tuple[Tensor, Tensor], names: Any) -> _MeasuredError:
    """Call an attention module with this rotation, up to its attention function."""
    AttentionInterface.register(PROBE, _measure)
    implementation = get_attention_name(module.config)
    options: dict[str, Any] = {"position_embeddings": rotation}
    options |= {name: None for name in ("attention_mask", "mask") if name in names}
    set_attention_name(module.config, PROBE)
    try:
        with torch.no_grad():
            module(x, **options)
    except _MeasuredError as measured:
        return measured
    finally:
        set_attention_name(module.config, implementation)
    raise TypeError("the module did not attend")


def _explains(scheme: PositionScheme, measured: MeasuredRotation) -> bool:
    """Tell whether a scheme turns the queries and keys before the rotation into those after it."""
    for before, after in measured.pairs:
        places = torch.tensor(PLACES, device=before.device)[None, None]
        # A few units of the dtype's precision, and of fp32's, in which angles are computed.
        tolerance = 8 * max(torch.finfo(before.dtype).eps, torch.finfo(torch.float32).eps * PLACES[-1])
        error = (scheme.rotate(before, places) - after).abs().max()
        if not bool(error <= tolerance * before.abs().max()):
            return False
    return True
