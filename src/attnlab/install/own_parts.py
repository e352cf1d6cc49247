"""What a model's attention has of its own that a stage can express: sinks (gpt-oss), a cap (Gemma 2), a relative bias
(T5), norms of queries and keys (Qwen3).

Sinks and a cap act inside the function that a mechanism replaces: the line has them, or they are dropped. A bias of
positions stays under `positions(model)`. Norms act before that function, and stay unless the line has a norm. A learned
parameter of a stage that replaces a part starts at the model's values, and `uninstall` writes it back.
"""

import dataclasses
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from attnlab.mechanisms import Mechanism, Positions, PositionScheme, parse_mechanism
from attnlab.mechanisms.features import EPSILON, rms_unit

from .attention_modules import AttentionModule, count_heads, has_position_bias, is_cross_attention
from .bridges import ALIBI

Place = Literal["attention", "positions", "projections"]
NORMS = {"query norm": "q_norm", "key norm": "k_norm"}
"""What models since Qwen3 call the norms of queries and keys in their attention modules."""


@dataclass(frozen=True, eq=False)
class OwnPart:
    """A part of a model's attention. `stage` is what a line writes for it, empty if no stage expresses it.

    holder, attribute: where the weight is that the part learns, if a stage's parameter can start at it.
    module: the module that computes a part outside the attention function.
    scheme: a bias of positions without learned values.
    """

    words: str
    place: Place
    stage: str = ""
    holder: nn.Module | None = None
    attribute: str = "weight"
    is_transposed: bool = False
    offset: float = 0.0
    module: nn.Module | None = None
    scheme: PositionScheme | None = None

    @property
    def weight(self) -> nn.Parameter | None:
        """What the part learns; not kept, since loading a model replaces its parameters."""
        return None if self.holder is None else getattr(self.holder, self.attribute)

    def read(self) -> Tensor:
        """Return the values at which a stage's parameter starts."""
        assert self.weight is not None
        return (self.weight.T if self.is_transposed else self.weight) + self.offset

    @property
    def learns(self) -> bool:
        """Whether the part has trained values."""
        return bool(self.list_weights())

    def list_weights(self) -> list[nn.Parameter]:
        """List the parameters of the part."""
        if self.module is not None:
            return list(self.module.parameters())
        return [] if self.weight is None else [self.weight]

    def stays_with(self, mechanism: Mechanism) -> bool:
        """Tell whether the part stays in the model if no stage replaces it."""
        return self.place == "projections" or (self.place == "positions" and mechanism.positions.is_of_model)

    def write(self, values: Tensor) -> None:
        """Set the weight, such that `read` returns these values."""
        assert self.weight is not None
        values = values.reshape(self.read().shape) - self.offset
        with torch.no_grad():
            self.weight.copy_(values.T if self.is_transposed else values)


def find_own_parts(attention: AttentionModule, attentions: list[AttentionModule]) -> dict[str, OwnPart]:
    """Return the parts of an attention module by the names that stages use; `attentions` are those of the model."""
    parts = {**_find_score_parts(attention.module), **_find_norms(attention), **_find_fixed_bias(attention)}
    if has_position_bias(attention.module) and not is_cross_attention(attention.module):
        # T5 computes the bias in the first layer of a stack and uses it in all; UMT5 has one in each layer.
        stack = [other.module for other in attentions if other.stack == attention.stack]
        tables = [getattr(module, "relative_attention_bias", None) for module in (attention.module, *stack)]
        table = next((table for table in tables if isinstance(table, nn.Embedding)), None)
        if table is not None:
            module: Any = attention.module
            sizes = f"buckets={table.num_embeddings}, max_distance={module.relative_attention_max_distance}"
            parts["relative bias"] = OwnPart(
                "its relative position bias", "positions", f"relative({sizes})", table, is_transposed=True
            )
    return parts


def _find_fixed_bias(attention: AttentionModule) -> dict[str, OwnPart]:
    scheme = None if attention.bridge is None else attention.bridge.find_bias(attention.config)
    if scheme is None:
        return {}
    # Another ALiBi than that of a line is not replaced by it, but dropped.
    name = "alibi" if scheme == ALIBI else "own alibi"
    return {name: OwnPart("its ALiBi", "positions", str(scheme) if name == "alibi" else "", scheme=scheme)}


def _find_score_parts(module: nn.Module) -> dict[str, OwnPart]:
    parts = {}
    sinks, limit = getattr(module, "sinks", None), getattr(module, "attn_logit_softcapping", None)
    if isinstance(sinks, nn.Parameter):
        parts["sinks"] = OwnPart("its learned attention sinks", "attention", "softmax(sink=learned)", module, "sinks")
    if limit is not None:
        parts["cap"] = OwnPart(f"its cap on scores ({limit:g})", "attention", f"cap({float(limit)!r})")
    return parts


def _find_norms(attention: AttentionModule) -> dict[str, OwnPart]:
    norms = {name: getattr(attention.module, attribute, None) for name, attribute in NORMS.items()}
    parts: dict[str, OwnPart] = {}
    for name, norm in norms.items():
        if isinstance(norm, nn.Module) and not isinstance(norm, nn.Identity):
            words = f"its norm of {'queries' if name == 'query norm' else 'keys'}"
            offset = _measure_gain_offset(norm, attention) if _norms_heads(attention) else None
            if offset is None:
                parts[name] = OwnPart(words, "projections", module=norm)
            else:
                holder = norm if getattr(norm, "weight", None) is not None else None
                stage = "norm(rms)" if holder is None else "norm(rms, gain=channel)"
                parts[name] = OwnPart(words, "projections", stage, holder, offset=offset, module=norm)
    if len({part.stage for part in parts.values()}) > 1 or len(parts) == 1:
        # A stage norms queries and keys in the same way.
        return {name: dataclasses.replace(part, stage="", holder=None) for name, part in parts.items()}
    return parts


def _norms_heads(attention: AttentionModule) -> bool:
    """Tell whether norms of an attention module act on its projections, before the rotation, as a stage does."""
    code: Any = getattr(inspect.unwrap(type(attention.module).forward), "__code__", None)
    names = [] if code is None else list(code.co_names)  # in the order of their first use
    rotations = [place for place, name in enumerate(names) if "rotary" in name and "emb" in name]
    is_first = "q_norm" in names and all(names.index("q_norm") < place for place in rotations)
    # A projection with a gate beside the queries (Qwen3-Next) has more heads than its config.
    return is_first and attention.projections is not None and attention.num_heads == count_heads(attention.module)


def _measure_gain_offset(norm: nn.Module, attention: AttentionModule) -> float | None:
    """Return what a norm adds to its weight (Gemma: 1), or None if it does not compute `norm(rms)` of each head."""
    dim, shapes = attention.head_dim, {name: tuple(p.shape) for name, p in norm.named_parameters()}
    if dim is None or shapes not in ({}, {"weight": (dim,)}):
        return None
    # Small numbers, so that another epsilon shows.
    x = 1e-3 * torch.randn(1, 3, dim, generator=torch.Generator().manual_seed(0))
    expected = rms_unit(x, EPSILON)
    try:
        weights = [{name: torch.full((dim,), float(w)) for name in shapes} for w in (0, 1)]
        at = [torch.func.functional_call(norm, weight, x) for weight in weights]
    except Exception:  # the forward is of others and may need other inputs
        return None
    if not shapes:
        return 0.0 if torch.allclose(at[0], expected, rtol=1e-4) else None
    for offset in (0.0, 1.0):
        if all(torch.allclose(y, (w + offset) * expected, rtol=1e-4) for w, y in enumerate(at)):
            return offset
    return None


@dataclass(frozen=True, eq=False)
class OwnBias:
    """The bias of positions of a model, in the layers where it stays: its scheme, and the weight that the model trains,
    if it has one."""

    scheme: PositionScheme
    part: OwnPart

    def list_parameters(self) -> dict[str, Tensor]:
        """Return the learned parameters of the scheme by their names in a mechanism."""
        if self.part.weight is None:
            return {}
        name = self.scheme.replaces["relative bias"]
        return {f"{self.scheme.name}_{name}": self.part.read()}

    def compute(self, num_queries: int, num_keys: int) -> Tensor:
        """Return the bias [1 h q k] of the last queries of a sequence."""
        assert self.part.weight is not None
        keys = torch.arange(num_keys, device=self.part.weight.device)[None, None]
        name = self.scheme.replaces["relative bias"]
        assert name is not None
        return self.scheme.position_bias(Positions(keys[..., num_keys - num_queries :], keys), {name: self.part.read()})


def make_own_bias(parts: Mapping[str, OwnPart], module: nn.Module) -> OwnBias | None:
    """Return the bias of positions of an attention module, or None if it has none."""
    fixed = next((part for part in parts.values() if part.scheme is not None), None)
    if fixed is not None and fixed.scheme is not None:
        return OwnBias(fixed.scheme, fixed)
    part = parts.get("relative bias")
    if part is None:
        return None
    scheme = parse_mechanism(f"dot | softmax | {part.stage}").positions
    return OwnBias(scheme.choose_direction(bool(getattr(module, "is_causal", False))), part)


def find_replacement(name: str, mechanism: Mechanism) -> tuple[bool, str | None]:
    """Tell whether a stage replaces a part, and return the learned parameter that starts at it, if one does."""
    for text, stage in mechanism.label_stages():
        if name in stage.replaces:
            parameter = stage.replaces[name]
            return True, None if parameter is None else f"{text}_{parameter}"
    return False, None
