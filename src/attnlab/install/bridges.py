"""Attention modules of transformers that compute attention by themselves, not through the AttentionInterface: those of
BLOOM, MPT and Falcon.

A bridge replaces the forward of such a module by one with the same projections, cache and output, which calls the
function that other models call by the interface. The bias that the model adds to its scores (ALiBi) is not passed on:
under `positions(model)` a position scheme computes it.
"""

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel

from attnlab.mechanisms import Line, Params, Positions, PositionScheme, parse_mechanism

from .interface import NAME, NAME_WITH_POSITIONS, attention
from .masks import CAUSAL
from .projections import StandIn

Remarks = dict[str, None]
ALIBI = parse_mechanism("alibi").positions
"""The scheme that a line names, whose slopes are those of BLOOM."""


class Bridge(StandIn):
    """The forward of an attention module that computes attention by itself, through attnlab's function.

    has_own_masks: whether the model changes the masks it makes, so that they cannot carry positions.
    """

    has_own_masks: ClassVar[bool] = False

    def __init__(self, module: nn.Module) -> None:
        self.attention: Any = module

    @abstractmethod
    def describe(self, config: Any, remarks: Remarks, keeps_positions: bool) -> list[str]:
        """Return the stages of what the module computes; add what no stage expresses to the remarks.

        keeps_positions: whether the model's own positions act, not those of a mechanism.
        """

    @abstractmethod
    def find_bias(self, config: Any) -> PositionScheme | None:
        """Return the scheme of the bias that the model adds to the scores, or None if it has none."""

    @abstractmethod
    def compute(self, *args: Any, **options: Any) -> tuple[Tensor, Tensor | None]:
        """Compute the module's output, and its weights if they are needed; the arguments are those of its forward."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Compute what the module's forward returns."""
        return self.compute(*args, **options)

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor, scale: float, dropout: float, needs_weights: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Attend with q [b h q d], k and v [b h k d]; return the output [b q h·d], and weights if they are needed."""
        dropout = dropout if self.module.training else 0.0
        out, weights = attention(
            self.module, q, k, v, mask, dropout, scale, is_causal=True, output_attentions=needs_weights
        )
        return out.flatten(2), weights


class BloomBridge(Bridge):
    """BLOOM: a projection laid out by head (q k v, q k v, …), ALiBi, and the residual added inside the module."""

    def describe(self, config: Any, remarks: Remarks, keeps_positions: bool) -> list[str]:
        """Return the line's stages."""
        return ["dot", "softmax", "alibi"]

    def find_bias(self, config: Any) -> PositionScheme | None:
        """Return ALiBi."""
        return ALIBI

    def compute(
        self, hidden_states: Tensor, residual: Tensor, alibi: Tensor, attention_mask: Tensor, layer_past: Any = None,
        use_cache: bool = False, output_attentions: bool = False, **options: Any,
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        """Compute the module's output with the residual, and the weights."""
        module = self.attention
        parts = module.query_key_value(hidden_states).unflatten(-1, (module.num_heads, 3, module.head_dim))
        q, k, v = (part.transpose(1, 2) for part in parts.unbind(-2))
        if layer_past is not None:
            k, v = layer_past.update(k, v, module.layer_idx)
        dropout = module.attention_dropout.p
        out, weights = self.attend(q, k, v, attention_mask, module.inv_norm_factor, dropout, output_attentions)
        if module.pretraining_tp > 1 and module.slow_but_exact:
            out = functional.linear(out, module.dense.weight)  # summed over slices by BLOOM, which leaves out the bias
        else:
            out = module.dense(out)
        return residual + functional.dropout(out, module.hidden_dropout, module.training), weights


class MptBridge(Bridge):
    """MPT: queries, keys and values from one projection, clipped in some models, and ALiBi with slopes of its own."""

    has_own_masks = True

    def describe(self, config: Any, remarks: Remarks, keeps_positions: bool) -> list[str]:
        """Return the line's stages; name clipped projections, and slopes that are not those of `alibi`."""
        settings = config.attn_config
        score = "dot" if settings.softmax_scale is None else f"dot(scale={float(settings.softmax_scale)!r})"
        if settings.clip_qkv:
            remarks[f"its projections, clipped at {settings.clip_qkv} (the model keeps it)"] = None
        if not isinstance(self.find_bias(config), MptAlibi):
            return [score, "softmax", "alibi"]
        if keeps_positions:
            remarks["its ALiBi, whose slopes are in another order (positions(model) keeps it)"] = None
        return [score, "softmax"]

    def find_bias(self, config: Any) -> PositionScheme | None:
        """Return ALiBi; its slopes are in another order if the number of heads is no power of 2."""
        return ALIBI if math.log2(self.attention.n_heads).is_integer() else MptAlibi()

    def compute(
        self, hidden_states: Tensor, position_bias: Tensor, past_key_values: Any = None,
        attention_mask: Tensor | None = None, **options: Any,
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        """Compute the module's output, and the weights."""
        module = self.attention
        fused = module.Wqkv(hidden_states)
        fused = fused.clamp(-module.clip_qkv, module.clip_qkv) if module.clip_qkv else fused
        parts = (part.unflatten(-1, (-1, module.head_dim)).transpose(1, 2) for part in fused.chunk(3, -1))
        q, k, v = parts
        if past_key_values is not None:
            k, v = past_key_values.update(k, v, module.layer_idx)
        assert attention_mask is not None
        mask = read_own_mask(attention_mask, q.shape[2], k.shape[2], past_key_values, module.layer_idx)
        # MPT computes its weights always, and does not tell its layers whether they are needed.
        needs_weights = bool(getattr(module, NEEDS_WEIGHTS, False))
        out, weights = self.attend(q, k, v, mask, module.softmax_scale, module.attn_dropout_p, needs_weights)
        return module.out_proj(out), weights


class FalconBridge(Bridge):
    """Falcon: queries, then keys and values, laid out by group of heads; a rotation, or ALiBi rounded to bf16."""

    has_own_masks = True

    def describe(self, config: Any, remarks: Remarks, keeps_positions: bool) -> list[str]:
        """Return the line's stages; name an ALiBi, and a rotation that `rope` does not compute."""
        stages, settings = ["dot", "softmax"], dict(config.rope_parameters)
        kept = "its ALiBi, which is divided by √head_dim with the scores and rounded to bf16" if config.alibi else ""
        if not config.alibi and settings.get("rope_type", "default") == "default":
            stages.append(f"rope(base={float(settings['rope_theta'])!r})")
        elif keeps_positions:
            remarks[f"{kept or 'a rotation of type ' + repr(settings['rope_type'])} (positions(model) keeps it)"] = None
        if self.attention.num_kv_heads != self.attention.num_heads:
            stages.append(f"heads(kv={self.attention.num_kv_heads})")
        return stages

    def find_bias(self, config: Any) -> PositionScheme | None:
        """Return its ALiBi, if the model has one."""
        return FalconAlibi(self.attention.inv_norm_factor) if config.alibi else None

    def compute(
        self, hidden_states: Tensor, alibi: Tensor | None, attention_mask: Tensor, position_ids: Any = None,
        layer_past: Any = None, use_cache: bool = False, output_attentions: bool = False,
        position_embeddings: tuple[Tensor, Tensor] | None = None, **options: Any,
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        """Compute the module's output, and the weights."""
        module = self.attention
        q, k, v = self._split(module.query_key_value(hidden_states))
        dropout = module.attention_dropout.p
        if alibi is None:
            assert position_embeddings is not None
            cos, sin = (part[:, None] for part in position_embeddings)
            q, k = _rotate(q, cos, sin), _rotate(k, cos, sin)
            dropout = 0.0  # Falcon has dropout beside ALiBi only
        if layer_past is not None:
            k, v = layer_past.update(k, v, module.layer_idx)
        mask = read_own_mask(attention_mask, q.shape[2], k.shape[2], layer_past, module.layer_idx)
        out, weights = self.attend(q, k, v, mask, module.inv_norm_factor, dropout, output_attentions)
        return module.dense(out), weights

    def _split(self, fused: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Split [b n …] into q [b h n d], and k and v with as many heads as there are groups."""
        module = self.attention
        is_by_group = module.new_decoder_architecture or module.multi_query
        num_groups = module.num_kv_heads if is_by_group else module.num_heads
        parts = fused.unflatten(-1, (num_groups, -1, module.head_dim))  # [b n groups queries+2 d]
        q, k, v = parts[..., :-2, :].flatten(2, 3), parts[..., -2, :], parts[..., -1, :]
        return q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)


def _rotate(t: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = t.chunk(2, -1)
    return t * cos + torch.cat([-second, first], -1) * sin


@dataclass(frozen=True)
class MptAlibi(PositionScheme):
    """MPT's ALiBi for a number of heads that is no power of 2; no line can name it."""

    name: ClassVar[str] = "mpt_alibi"
    bias_of: ClassVar[Literal["distances"]] = "distances"

    def constants(self, num_heads: int) -> Mapping[str, Tensor]:
        """Return the slopes: every other one of twice as many heads, then those between."""
        power = 2 ** math.ceil(math.log2(num_heads))
        slopes = 0.5 ** (torch.arange(1, power + 1) * (8 / power))
        return {"slopes": torch.cat([slopes[1::2], slopes[::2]])[:num_heads]}

    def position_bias(self, positions: Positions, p: Params) -> Tensor:
        """Return the bias [b|1 h q k], as `alibi` computes it from slopes."""
        return ALIBI.position_bias(positions, p)


@dataclass(frozen=True)
class FalconAlibi(PositionScheme):
    """Falcon's ALiBi: a slope times the key's position in bf16, times the scale of the scores; no line can name it."""

    name: ClassVar[str] = "falcon_alibi"
    bias_of: ClassVar[Literal["positions"]] = "positions"

    scale: float = 1.0

    def constants(self, num_heads: int) -> Mapping[str, Tensor]:
        """Return the slopes of `alibi`."""
        return ALIBI.constants(num_heads)

    def position_bias(self, positions: Positions, p: Params) -> Tensor:
        """Return the bias [b|1 h q k], the same for every query."""
        slopes = p["slopes"][:, None]
        bias = (slopes.bfloat16() * positions.keys.clamp(min=0)).to(slopes.dtype) * self.scale  # [b|1 h k]
        return bias[..., None, :].expand(-1, -1, positions.queries.shape[-1], -1)


BRIDGES: Mapping[str, type[Bridge]] = {
    "BloomAttention": BloomBridge, "MptAttention": MptBridge, "FalconAttention": FalconBridge,
}  # fmt: skip
"""The bridges by the class of the attention module."""

NEEDS_WEIGHTS = "_attnlab_needs_weights"
"""The attribute of MPT's attention modules that says whether the current call of the model returns weights."""


def find_bridge(module: nn.Module) -> Bridge | None:
    """Return the bridge for an attention module that computes attention by itself, not in place yet."""
    bridge = BRIDGES.get(type(module).__name__)
    return None if bridge is None else bridge(module)


def choose_name(line: Line, model: PreTrainedModel) -> str:
    """Return the name under which transformers calls a mechanism: one for all layers of a model."""
    names = {type(module).__name__ for module in model.modules()}
    bridges = [bridge for name, bridge in BRIDGES.items() if name in names]
    if any(bridge.has_own_masks for bridge in bridges):
        return NAME
    keeps_bias = bool(bridges) and any(mechanism.positions.is_of_model for mechanism in line.distinct)
    return NAME_WITH_POSITIONS if keeps_bias or line.find_stages_needing("positions") else NAME


def tell_weights(model: PreTrainedModel, args: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Tell the attention modules of MPT whether their weights are needed: a hook before the forward of their model."""
    asked = options.get("output_attentions")
    asked = model.config.output_attentions if asked is None else asked
    for module in model.modules():
        if isinstance(vars(module).get("forward"), StandIn) and BRIDGES.get(type(module).__name__) is MptBridge:
            setattr(module, NEEDS_WEIGHTS, bool(asked))


def read_own_mask(mask: Tensor, num_queries: int, num_keys: int, cache: Any, index: int) -> Tensor:
    """Return the mask of a model that has changed the one it made, in a form that `read_mask` knows.

    mask: booleans [b 1 q|1 k], True for a visible pair or key (MPT, Falcon with a rotation), or floats [b h q k] that
    add a bias where a pair is visible and the lowest number where it is not (Falcon with ALiBi).
    """
    visible = mask if mask.dtype == torch.bool else (mask > torch.finfo(mask.dtype).min / 2)[:, :1]
    # A static cache has more keys than tokens.
    num_tokens = num_queries if cache is None else cache.get_seq_length(index)
    is_aligned = isinstance(num_tokens, int) and num_tokens == num_keys
    if not is_aligned:
        return visible
    keys = visible[:, :, -1:]  # the last query sees every key that is no padding
    if visible.shape[2] > 1:
        if torch.compiler.is_compiling():
            return visible
        places = torch.arange(num_keys, device=mask.device)
        causal = places <= places[num_keys - num_queries :, None]
        if not torch.equal(visible, keys & causal):
            return visible  # a mask of the user's own
    return keys.to(CAUSAL)
