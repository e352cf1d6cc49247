"""The attention modules of a model: those that call transformers' AttentionInterface or have a bridge to it, and their
sizes."""

import inspect
import re
from dataclasses import dataclass
from types import CodeType
from typing import Any

from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.pytorch_utils import Conv1D

from attnlab.errors import InstallError

from .bridges import Bridge, find_bridge
from .compat import ATTENTION_REGISTRY
from .projections import FUSED, Part, Projections, find_projections, in_width

HEAD_DIMS = ("head_dim", "attention_head_size", "head_size", "key_value_proj_dim")
HEAD_COUNTS = ("num_heads", "num_attention_heads", "n_heads", "n_head")

FORBIDDING = {
    "relative_k_proj": "it adds a relative position term to its scores",
    "linear_pos": "it adds a relative position term to its scores",
}
"""Attributes of a module whose scores have a term that no stage expresses."""


@dataclass(frozen=True)
class AttentionModule:
    """One attention module of a model. `stack` names the layers it belongs to, `index` is its number among them.

    config: its own, or that of the model around it. bridge: what replaces its forward if it computes attention by
    itself.
    """

    name: str
    module: nn.Module
    config: PreTrainedConfig
    stack: str
    index: int | None
    projections: Projections | None
    num_heads: int | None
    num_key_heads: int | None
    head_dim: int | None
    value_dim: int | None
    bridge: Bridge | None

    @property
    def is_causal(self) -> bool | None:
        """Whether the module's attention is causal, if that is known."""
        return True if self.bridge is not None else getattr(self.module, "is_causal", None)

    @property
    def model_dim(self) -> int | None:
        """The width of the module's input, if it is known."""
        if self.projections is not None:
            return in_width(self.projections["q"].module)
        return None if self.bridge is None else self.config.hidden_size

    def heads_of(self, part: Part) -> int | None:
        """Return the number of heads of the queries, or of the keys and values."""
        return self.num_heads if part == "q" else self.num_key_heads


def find_attention_modules(model: PreTrainedModel) -> list[AttentionModule]:
    """List a model's attention modules in order; refuse a model with one that does not call the interface."""
    attentions = []
    for full_name, module in model.named_modules():
        # Names inside the body: with every head they are the same, and so are the initial parameters.
        name = full_name.removeprefix(f"{model.base_model_prefix}.")
        if _uses_registry(module):
            _check_scores(name, module)
            attentions.append(describe_attention(name, module))
        elif find_bridge(module) is not None:
            attentions.append(describe_attention(name, module, model.config))
        elif type(module).__name__.startswith("RelativePositionBias"):
            raise InstallError(
                f"'{name}' ({type(module).__name__}) adds a position bias to the scores of {type(model).__name__}, "
                "which no stage expresses; it cannot take a mechanism"
            )
        elif _is_unreachable(module):
            raise InstallError(
                f"'{name}' ({type(module).__name__}) computes attention by itself, not through transformers' "
                "AttentionInterface; it cannot take a mechanism"
            )
    if not attentions:
        raise InstallError(
            f"{type(model).__name__} has no attention module that goes through transformers' AttentionInterface; "
            "it cannot take a mechanism"
        )
    return attentions


def _uses_registry(module: nn.Module) -> bool:
    return ATTENTION_REGISTRY in list_forward_names(module)


def list_forward_names(module: nn.Module) -> set[str]:
    """Return the names of globals and attributes in the code of a module's forward."""
    code = getattr(inspect.unwrap(type(module).forward), "__code__", None)
    return set() if code is None else _list_names(code)


def _list_names(code: CodeType) -> set[str]:
    """Return every global name and attribute in a function and its inner functions."""
    inner = (_list_names(constant) for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*inner)


def _is_unreachable(module: nn.Module) -> bool:
    """Tell whether a module is attention by its class's name, has weights, and does not use the registry."""
    if "attention" not in type(module).__name__.lower() or next(module.parameters(), None) is None:
        return False
    if any(_uses_registry(part) for part in module.modules()):
        return False
    if isinstance(module, nn.MultiheadAttention):
        return True
    # Smaller modules of an attention, such as the projection of its output, are not attention themselves.
    num_linear = sum(isinstance(part, nn.Linear | Conv1D) for part in module.modules())
    return num_linear > 2 or any(hasattr(module, name) for name in (*FUSED, "query_key_value"))


def _check_scores(name: str, module: nn.Module) -> None:
    """Refuse a module without a config, or whose scores have a term that no stage expresses."""
    if not isinstance(getattr(module, "config", None), PreTrainedConfig):
        raise InstallError(
            f"'{name}' ({type(module).__name__}) has no `config` to read its attention from; its structure is not known"
        )
    reasons = [reason for attribute, reason in FORBIDDING.items() if getattr(module, attribute, None) is not None]
    if hasattr(module, "relative_attention_bias") and not has_position_bias(module):
        reasons.append("it adds a relative position bias to its scores that is not computed as in T5")
    if reasons:
        raise InstallError(
            f"'{name}' ({type(module).__name__}) cannot take a mechanism: {reasons[0]}, which no stage expresses"
        )


def has_position_bias(module: nn.Module) -> bool:
    """Tell whether a module passes a relative bias of positions to its attention function, as T5's does."""
    names = ("relative_attention_num_buckets", "relative_attention_max_distance")
    sizes = [getattr(module, name, None) for name in names]
    return hasattr(module, "has_relative_attention_bias") and all(isinstance(size, int) for size in sizes)


def is_cross_attention(module: nn.Module) -> bool:
    """Tell whether a module with a position bias is the cross-attention of a decoder, which has none."""
    return bool(getattr(module, "is_decoder", False)) and not getattr(module, "is_causal", True)


def describe_attention(name: str, module: Any, config: PreTrainedConfig | None = None) -> AttentionModule:
    """Read an attention module's structure and sizes; `config` is the model's, for a module without its own."""
    head_dim = _find_size(module, HEAD_DIMS)
    num_heads = _find_size(module, HEAD_COUNTS)
    if head_dim is None and num_heads is not None:
        separate = find_projections(module, None)
        head_dim = separate["q"].width // num_heads if separate else None
    projections = find_projections(module, head_dim * num_heads if head_dim and num_heads else None)
    number = r"(?<![^.])\d+(?![^.])"
    numbers = re.findall(number, name)
    index = int(numbers[0]) if len(numbers) == 1 else None
    holder: Any = config if getattr(module, "config", None) is None else module.config
    what = name, module, holder, re.sub(number, "*", name), index
    bridge = find_bridge(module)
    if projections is None or head_dim is None:
        num_key_heads = _find_size(module, ("num_key_value_heads", "num_kv_heads")) or num_heads
        return AttentionModule(*what, None, num_heads, num_key_heads, head_dim, head_dim, bridge)
    num_heads, num_key_heads = (projections[part].width // head_dim for part in ("q", "k"))
    value_dim = projections["v"].width // num_key_heads
    return AttentionModule(*what, projections, num_heads, num_key_heads, head_dim, value_dim, bridge)


def count_heads(module: nn.Module) -> int | None:
    """Return how many query heads a module has according to its attributes or its config."""
    return _find_size(module, HEAD_COUNTS)


def _find_size(module: nn.Module, names: tuple[str, ...]) -> int | None:
    """Return the first of these attributes of a module, or of its config, that is a size."""
    for holder in (module, getattr(module, "config", None)):
        for name in names:
            size = getattr(holder, name, None)
            if isinstance(size, int) and not isinstance(size, bool) and size > 0:
                return size
    return None
