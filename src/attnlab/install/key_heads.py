"""heads(kv=N) in a model: narrower projections of keys and values, and the sizes that the attention module holds.

A new head starts as the mean of the old heads of its group (Ainslie et al. 2023, arXiv:2305.13245). Query head i uses
key head i // (heads / N), as in Llama.
"""

import dataclasses
from collections.abc import Callable
from math import gcd
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from attnlab.errors import InstallError
from attnlab.mechanisms import KeyHeads

from .attention_modules import HEAD_COUNTS, AttentionModule, list_forward_names
from .inspection import RECORD
from .projections import Part, Projection, check_forward, describe_unknown, unwrap_adapter

NARROWED: tuple[Part, ...] = ("k", "v")
SPLITTING = ("split_size", "num_key_value_heads")
"""The attributes by which GPT-2 and Phi-3 split their fused projections."""


def describe_narrowed(stage: KeyHeads, attention: AttentionModule) -> AttentionModule:
    """Return the description of an attention module as the stage will make it; refuse one that cannot take it."""
    where = f"'{attention.name}' ({type(attention.module).__name__})"
    projections, num_heads, num_old = attention.projections, attention.num_heads, attention.num_key_heads
    if stage.kv == num_old:
        return attention
    if projections is None or num_heads is None or num_old is None:
        why = describe_unknown(attention.module, attention.name)
        raise InstallError(f"'{stage}' narrows projections, and {why}")
    if gcd(num_heads, num_old) % stage.kv:
        accepted = [str(n) for n in range(1, num_old + 1) if gcd(num_heads, num_old) % n == 0]
        raise InstallError(
            f"'{stage}': N of heads(kv=N) must divide both the {num_heads} query heads and the {num_old} heads of keys "
            f"and values of {where}; N may be {', '.join(accepted)}"
        )
    if _fixes_head_count(attention.module):
        raise InstallError(
            f"'{stage}' gives keys fewer heads than queries, and the forward of {where} uses one number of heads for "
            "both"
        )
    narrowed, start = dict(projections), projections["k"].start
    for part in NARROWED:
        old = projections[part]
        _check_projection(stage, attention, old, where)
        begin, width = start if old.is_fused else 0, old.width // num_old * stage.kv
        narrowed[part] = dataclasses.replace(old, start=begin, stop=begin + width)
        start += width
    return dataclasses.replace(attention, projections=narrowed, num_key_heads=stage.kv)


def _fixes_head_count(module: nn.Module) -> bool:
    """Tell whether a module divides keys into a fixed number of heads, not into heads of a fixed width."""
    knows_groups = any(hasattr(module, name) for name in ("num_key_value_heads", "num_key_value_groups"))
    return not knows_groups and not list_forward_names(module).isdisjoint(HEAD_COUNTS)


def _check_projection(stage: KeyHeads, attention: AttentionModule, projection: Projection, where: str) -> None:
    check_forward(projection.module)
    if _has_adapter(attention, projection):
        raise InstallError(
            f"'{projection.name}' of {where} has an adapter (peft) already; install '{stage}' first, adapters after"
        )
    if not projection.module.weight.is_floating_point():  # type: ignore[operator]
        raise InstallError(f"'{stage}' averages weights, and those of '{projection.name}' of {where} are quantized")
    if projection.is_fused and not any(hasattr(attention.module, name) for name in SPLITTING):
        raise InstallError(
            f"'{stage}' narrows a part of '{projection.name}', and attnlab does not know how {where} splits it; it "
            "knows separate projections, and the fused ones of GPT-2 and Phi-3"
        )


def _has_adapter(attention: AttentionModule, projection: Projection) -> bool:
    holder = getattr(attention.module, projection.name)
    return holder is not unwrap_adapter(holder)


class NarrowedHeads:
    """The narrowed projections of an attention module; `attention` describes it as it was."""

    def __init__(self, stage: KeyHeads, attention: AttentionModule) -> None:
        assert attention.projections is not None
        assert attention.num_heads is not None
        assert attention.num_key_heads is not None
        self.stage, self.attention = stage, attention
        self.group = attention.num_key_heads // stage.kv
        """How many of the old heads become one."""
        k, v = (attention.projections[part] for part in NARROWED)
        # A fused module ends with the heads of the keys and then those of the values, of one width.
        self.modules = [(k.module, k.start), *([] if k.is_fused else [(v.module, 0)])]
        self.sizes: dict[str, Any] = {}
        if self.group > 1:
            self._change(_average_heads, narrows=True)
            self._set_sizes(attention.num_heads // stage.kv, [part.width // self.group for part in (k, v)])

    def _change(self, change: Callable[[Tensor, int, int], Tensor], narrows: bool) -> None:
        """Replace weights and biases, and the widths that their modules hold."""
        for module, start in self.modules:
            width = "nf" if isinstance(module, Conv1D) else "out_features"
            old_width = getattr(module, width) - start
            setattr(module, width, start + (old_width // self.group if narrows else old_width * self.group))
            for name in ("weight", "bias"):
                old = getattr(module, name)
                if old is not None:
                    axis = 1 if isinstance(module, Conv1D) and name == "weight" else 0
                    kept, heads = old.detach().split([start, old.shape[axis] - start], axis)
                    # Each module has as many heads as all of its parts together.
                    num_heads = self._count_heads(module) // (1 if narrows else self.group)
                    by_head = heads.unflatten(axis, (num_heads, -1))
                    new = torch.cat([kept, change(by_head, axis, self.group).flatten(axis, axis + 1)], axis)
                    setattr(module, name, nn.Parameter(new, old.requires_grad))

    def _count_heads(self, module: nn.Module) -> int:
        """Return the number of old heads of a module's keys and values."""
        assert self.attention.num_key_heads is not None
        return self.attention.num_key_heads * (len(NARROWED) if len(self.modules) == 1 else 1)

    def _set_sizes(self, num_groups: int, widths: list[int]) -> None:
        """Set the sizes by which the attention module splits its projections and repeats key heads."""
        module = self.attention.module
        sizes: dict[str, Any] = {"num_key_value_heads": self.stage.kv, "num_key_value_groups": num_groups}
        if len(self.modules) == 1:
            start = self.modules[0][1]
            sizes["split_size"] = [start, *widths] if start else widths
        for name, size in sizes.items():
            if hasattr(module, name):
                self.sizes[name] = getattr(module, name)
                setattr(module, name, size)

    def check_adapters(self) -> None:
        """Refuse to restore the width below an adapter (peft), which has the narrower one."""
        for part in NARROWED if self.group > 1 else ():
            projection = (self.attention.projections or {})[part]
            if _has_adapter(self.attention, projection):
                raise InstallError(
                    f"'{projection.name}' of '{self.attention.name}' has an adapter (peft) of the width of "
                    f"'{self.stage}'; merge or unload it first"
                )

    def undo(self) -> None:
        """Restore the width, with the current values of each head repeated for its group."""
        if self.group > 1:
            self._change(_repeat_heads, narrows=False)
            for name, size in self.sizes.items():
                setattr(self.attention.module, name, size)

    def list_weights(self) -> list[tuple[Tensor, int, int]]:
        """Return the weights with narrowed heads, each with the axis of the heads and where they start on it."""
        return [(module.weight, int(isinstance(module, Conv1D)), start) for module, start in self.modules]  # type: ignore[misc]


def _average_heads(heads: Tensor, axis: int, group: int) -> Tensor:
    """Return the mean of each group of consecutive heads."""
    grouped: Tensor = heads.unflatten(axis, (-1, group))
    return grouped.mean(axis + 1)


def _repeat_heads(heads: Tensor, axis: int, group: int) -> Tensor:
    return heads.repeat_interleave(group, axis)


def rescale_new_heads(model: PreTrainedModel) -> None:
    """Give the narrowed heads of a new model the deviation of weights that its architecture draws.

    The mean of g independent heads has a deviation smaller by √g, and keys and values would start too small.
    """
    scaled: set[int] = set()
    for narrowed in vars(model)[RECORD].narrowed:
        for weight, axis, start in narrowed.list_weights():
            if id(weight) not in scaled:  # share(kv) ties two of them
                scaled.add(id(weight))
                with torch.no_grad():
                    weight.narrow(axis, start, weight.shape[axis] - start).mul_(narrowed.group**0.5)
