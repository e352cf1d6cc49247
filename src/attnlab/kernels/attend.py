"""The way in: check what came, walk the stages around the kernel, and let the chosen kernel do the rest.

values stages → token dropout → kernel (score, mask, weights, mix) → output stages
"""

from __future__ import annotations

import dataclasses
import functools
import zlib
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attnlab.errors import ParameterError, RequestError, ShapeError, closest
from attnlab.mechanisms import Mechanism, Params, TokenDropout

from . import reference
from .call import Call
from .choose import choose
from .dropout import is_rate
from .positions import Given, as_positions
from .visibility import Visibility, as_mask

Line = str | Mechanism


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mechanism: Line = "dot | softmax",
    *,
    causal: bool = False,
    mask: Tensor | None = None,
    kernel: str = "auto",
    scale: float | None = None,
    parameters: Mapping[str, Tensor] | None = None,
    dropout: float = 0.0,
    training: bool = False,
    x: Tensor | None = None,
    first: Tensor | None = None,
    positions: Given = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Attend with q [b h q d], k [b h k d] and v [b h k e]; leading axes of size 1 may be left out.

    causal: no query sees a key after it. The last query stands at the last key, so that queries against a longer
    cache see all that came before them; with more queries than keys the first ones see nothing.
    mask: booleans that broadcast to [b h q k], True = may attend. What it hides must still be finite numbers.
    scale: what dot or cosine scores are multiplied with, where the mechanism does not say.
    kernel: a kernel's name, or 'auto' for the fastest that can (`attnlab.explain` says which).
    parameters: learned parameters by the names `Mechanism.parameters` declares; their initial values if left out.
    dropout: the rate at which weights vanish. training: whether token_dropout acts.
    x: the layer's input split by heads, for bypass; the projected tensor itself if left out (a projection of 1).
    first: the first layer's values, for value_residual; v itself if left out.
    positions: for stages that ask for them: whole numbers [k] or [b k], where the keys stand, with the queries at the
    last of them; or a pair, of the queries and of the keys. 0, 1, … if left out. `causal` goes by the keys' order.
    generator: what dropout is drawn from; torch's own if left out.
    """
    if not is_rate(dropout):
        raise RequestError(f"dropout must be 0, or a rate from 1/65536 up to 1 − 1/65536, not {dropout!r}")
    drawn = Draws(dropout, training, generator)
    call, names = prepare(q, k, v, mechanism, causal, mask, scale, parameters, x, first, positions, drawn)
    chosen, _ = choose(call.request, kernel)
    with _without_autocast(call.q):
        out = _attend_to_nothing(call) if _is_empty(call) else chosen.attend(call)
        for stage in call.mechanism.output:
            out = stage(out, call.q, call.params_of(stage)).to(out.dtype)
    return out.reshape(out.shape[4 - names :])


def _is_empty(call: Call) -> bool:
    """Tell whether there is no pair at all, which torch's fused pass would divide by."""
    return 0 in (*call.q.shape, call.k.shape[2])


def _attend_to_nothing(call: Call) -> Tensor:
    """Return what attending to nothing gives: zeros, with gradients of zero."""
    everything = torch.ones((), dtype=torch.bool, device=call.q.device)
    zero = sum(x.masked_fill(everything, 0).sum() for x in (call.q, call.k, call.v))
    return zero + call.q.new_zeros(*call.q.shape[:3], call.v.shape[3])


def weights(
    q: Tensor,
    k: Tensor,
    mechanism: Line = "dot | softmax",
    *,
    causal: bool = False,
    mask: Tensor | None = None,
    scale: float | None = None,
    parameters: Mapping[str, Tensor] | None = None,
    x: Tensor | None = None,
    positions: Given = None,
) -> Tensor:
    """Return the weights [b h q k], from the reference."""
    call, names = prepare(q, k, k, mechanism, causal, mask, scale, parameters, x, None, positions)
    with _without_autocast(call.q):
        w = call.q.new_zeros(*call.q.shape[:3], call.k.shape[2]) if _is_empty(call) else reference.weights(call)
    return w.reshape(w.shape[4 - names :])


def prepare(
    q: Tensor, k: Tensor, v: Tensor, mechanism: Line, causal: bool, mask: Tensor | None,
    scale: float | None, parameters: Mapping[str, Tensor] | None, x: Tensor | None, first: Tensor | None,
    positions: Given = None, drawn: Draws | None = None,
) -> tuple[Call, int]:  # fmt: skip
    """Check the inputs and apply the values stages; return the call and how many axes the caller's q had."""
    drawn = drawn or Draws()
    if not isinstance(causal, bool):
        raise RequestError(f"causal must be True or False, not {causal!r}")
    parsed = _parse(mechanism) if scale is None else set_scale(_parse(mechanism), scale)
    num_axes = q.dim() if isinstance(q, Tensor) else 0
    q, k, v = (_add_axes(name, tensor) for name, tensor in (("q", q), ("k", k), ("v", v)))
    k, v = _repeat_key_heads(q, k), _repeat_key_heads(q, v)
    _check_shapes(q, k, v)
    p = _check_parameters(parsed, q, v, parameters)
    tensors = {"q": q, "k": k, "v": v}
    for stage in parsed.values:
        t = tensors[stage.target]
        there = t if x is None else _check_side_input("x", _add_axes("x", x), t)
        origin = v if first is None else _check_side_input("first", _add_axes("first", first), v)
        tensors[stage.target] = stage(t, there, origin, parsed.params_of(stage, p)).to(t.dtype)
    shape = (*q.shape[:3], k.shape[2])
    full, seed = as_mask(mask, shape), drawn.seed()
    kept = drawn.kept_keys(parsed.drop, k)
    if kept is not None:
        full = kept if full is None else full & kept
    visibility = Visibility(q.shape[2], k.shape[2], causal, full, q.device)
    # Only a stage that asks for positions pays for them.
    is_asked = positions is not None or bool(parsed.stages_asking("positions"))
    where = as_positions(positions, q, k) if is_asked else None
    changed = (tensors["q"], tensors["k"], tensors["v"])
    return Call(parsed, *changed, p, visibility, drawn.dropout, seed, where), num_axes


@dataclass(frozen=True)
class Draws:
    """What a call draws at random: the seed of attention dropout, and the tokens that vanish while training."""

    dropout: float = 0.0
    training: bool = False
    generator: torch.Generator | None = None

    def seed(self) -> int:
        """Draw the seed of attention dropout; 0 where there is none."""
        return int(torch.randint(2**62, (), generator=self.generator)) if self.dropout else 0

    def kept_keys(self, drop: TokenDropout | None, k: Tensor) -> Tensor | None:
        """Draw which keys stay, [b 1 1 k], or None where all do."""
        if drop is None or not self.training or drop.p == 0:
            return None
        source = self.generator or torch.Generator().manual_seed(int(torch.randint(2**62, ())))
        return drop.kept(k.shape[0], k.shape[2], source).to(k.device)


def _parse(mechanism: Line) -> Mechanism:
    """Read a line; a mechanism is one already."""
    return mechanism if isinstance(mechanism, Mechanism) else Mechanism.parse(mechanism)


@functools.lru_cache(maxsize=1024)
def set_scale(mechanism: Mechanism, scale: float) -> Mechanism:
    """Give a mechanism's score the scale of the call."""
    score: Any = mechanism.score
    if not hasattr(score, "scale"):
        raise RequestError(f"'{score}' takes no scale; dot and cosine do")
    if score.scale is not None:
        raise RequestError(f"'{score}' has a scale already; leave out scale={scale}, or the one in the line")
    return dataclasses.replace(mechanism, score=dataclasses.replace(score, scale=scale))


def _add_axes(name: str, tensor: Tensor) -> Tensor:
    """Give a tensor its four axes, and whole numbers a fraction."""
    if not isinstance(tensor, Tensor):
        raise ShapeError(f"{name} must be a torch tensor, not {type(tensor).__name__}")
    if not 1 <= tensor.dim() <= 4:
        raise ShapeError(f"{name} must be [batch, heads, length, head_dim]; its shape is {tuple(tensor.shape)}")
    if tensor.is_complex():
        raise ShapeError(f"{name} must hold real numbers, not {tensor.dtype}")
    tensor = tensor if tensor.is_floating_point() else tensor.to(torch.get_default_dtype())
    device = tensor.device.type
    if torch.is_autocast_enabled(device):
        tensor = tensor.to(torch.get_autocast_dtype(device))
    return tensor.reshape((1,) * (4 - tensor.dim()) + tuple(tensor.shape))


def _repeat_key_heads(q: Tensor, t: Tensor) -> Tensor:
    """Repeat grouped key heads so that every query head has its own."""
    if t.shape[1] == q.shape[1] or t.shape[1] == 0 or q.shape[1] % t.shape[1]:
        return t
    return t.repeat_interleave(q.shape[1] // t.shape[1], dim=1)


def _check_shapes(q: Tensor, k: Tensor, v: Tensor) -> None:
    """Refuse tensors that do not belong together."""
    shapes = f"q {tuple(q.shape)}, k {tuple(k.shape)}, v {tuple(v.shape)}"
    if not q.shape[:2] == k.shape[:2] == v.shape[:2]:
        raise ShapeError(
            f"q, k and v must have the same batch and heads (fewer key heads must divide the query heads): {shapes}"
        )
    if q.shape[3] != k.shape[3]:
        raise ShapeError(f"q and k must have the same head_dim: {shapes}")
    if k.shape[2] != v.shape[2]:
        raise ShapeError(f"k and v must have the same length: {shapes}")
    if not (q.dtype == k.dtype == v.dtype and q.device == k.device == v.device):
        kinds = ", ".join(f"{n} {t.dtype} on {t.device}" for n, t in (("q", q), ("k", k), ("v", v)))
        raise ShapeError(f"q, k and v must have one dtype and device: {kinds}")
    if q.shape[3] == 0 or v.shape[3] == 0:
        raise ShapeError(f"head_dim must not be 0: {shapes}")


def _check_side_input(name: str, tensor: Tensor, like: Tensor) -> Tensor:
    """Refuse a side input that is not of the shape of the tensor it joins."""
    if tensor.shape != like.shape:
        raise ShapeError(
            f"{name} must have the shape of the tensor it joins, {tuple(like.shape)}, not {tuple(tensor.shape)}"
        )
    return tensor.to(like)


def _check_parameters(mechanism: Mechanism, q: Tensor, v: Tensor, given: Mapping[str, Tensor] | None) -> Params:
    """Return the learned parameters in the dtype of q: the caller's, checked, or the declared initial values."""
    sizes = (q.shape[1], q.shape[3], v.shape[3])
    if given is None:
        return {name: value.to(q) for name, value in initial_values(mechanism, *sizes).items()}
    declared = mechanism.parameters(*sizes)
    for name in given:
        if name not in declared:
            has = f"; it has {', '.join(declared)}" if declared else "; it has none"
            raise ParameterError(f"'{mechanism}' has no parameter '{name}'{closest(name, declared) or has}")
    for name, parameter in declared.items():
        if name not in given:
            raise ParameterError(f"parameter '{name}' of '{mechanism}' is missing; its shape is {parameter.shape}")
        if tuple(given[name].shape) != parameter.shape:
            raise ParameterError(
                f"parameter '{name}' must have shape {parameter.shape}, not {tuple(given[name].shape)}"
            )
    return {name: given[name].to(q) for name in declared}


def initial_values(
    mechanism: Mechanism, num_heads: int, head_dim: int, value_dim: int, seed: int = 0
) -> dict[str, Tensor]:
    """Return what the learned parameters start as: each a function of the seed and its own name alone."""
    values = {}
    for name, parameter in mechanism.parameters(num_heads, head_dim, value_dim).items():
        if parameter.low == parameter.high:
            values[name] = torch.full(parameter.shape, parameter.low, dtype=torch.float32, device="cpu")
            continue
        generator = torch.Generator().manual_seed(zlib.crc32(f"{name}:{seed}".encode()))
        draw = torch.rand(parameter.shape, generator=generator, dtype=torch.float32, device="cpu")
        values[name] = parameter.low + (parameter.high - parameter.low) * draw
    return values


def _without_autocast(q: Tensor) -> torch.autocast | nullcontext[None]:
    """Keep autocast out of the kernels: the inputs have its dtype already, and inner precision is theirs to choose."""
    device = q.device.type
    return torch.autocast(device, enabled=False) if torch.is_autocast_enabled(device) else nullcontext()
