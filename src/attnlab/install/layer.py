"""What an attention module of a model holds as its submodule `attnlab`: a mechanism with its learned parameters.

They train, move, save and load like any weight of the model.
"""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from attnlab.errors import InstallError
from attnlab.kernels import attend, initial_values, weights
from attnlab.mechanisms import Mechanism, Positions, Share, Stage, Value
from attnlab.mechanisms.mechanism import label

from .attention_modules import AttentionModule
from .masks import Rule
from .projections import Part

PREFIX = ("prefix_keys", "prefix_values")
"""The parameters [h n d] of a layer that `set_prefix` made, each None where it did not."""


class Acting(NamedTuple):
    """A values stage as it is now, and its parameters: the stage's name for each, and the layer's."""

    stage: Value
    names: tuple[tuple[str, str], ...]


class Layer(nn.Module):
    """A mechanism in one attention module.

    `values` are its values stages that act here. A model gives x and the first layer's values, and keeps a cache of
    keys and values, so they act where the projections are computed (`valuepath`), and `core` is the rest.
    """

    def __init__(self, mechanism: Mechanism, values: tuple[Value, ...], attention: AttentionModule, seed: int) -> None:
        super().__init__()
        self.mechanism = mechanism
        self.core = dataclasses.replace(mechanism, values=(), share=Share())
        self.values = values
        self.scheduled = [(text, stage) for text, stage in self.core.labelled() if stage.is_scheduled]
        self.attention_name, self.stack = attention.name, attention.stack
        self.learned: list[str] = []
        self.undecayed: list[str] = []
        self.lenders: dict[str, tuple[Layer]] = {}
        self.expected: Tensor | None = None
        self.is_proved = False
        scales = (getattr(attention.module, "scaling", None), attention.head_dim and attention.head_dim**-0.5)
        self.scaled: dict[float, Mechanism] = {scale: self.core for scale in scales if isinstance(scale, float)}
        self.has_penalty = has_penalty(mechanism)
        self.prefix_keys: nn.Parameter | None
        self.prefix_values: nn.Parameter | None
        for name in PREFIX:
            self.register_parameter(name, None)
        # A parameter starts as a function of the seed, the layer's name and its own: no other weight's start moves.
        own_seed = zlib.crc32(f"{attention.name}:{seed}".encode())
        if _has_parameters(self.core):
            self.declare(self.core, self.sizes(attention, "q"), own_seed, self.learned)
        for stage in values:
            alone = dataclasses.replace(Mechanism(), values=(stage,))
            if _has_parameters(alone):
                self.declare(alone, self.sizes(attention, stage.target), own_seed, [])
        self.move_to(None)

    @staticmethod
    def sizes(attention: AttentionModule, part: Part) -> tuple[int, int, int]:
        """Return the heads and widths that learned parameters are shaped by."""
        heads = attention.heads_of(part)
        if heads is None or attention.head_dim is None or attention.value_dim is None:
            raise InstallError(
                f"'{attention.name}' ({type(attention.module).__name__}) does not say how many heads it has and how "
                "wide they are, which the mechanism's learned parameters are shaped by"
            )
        return heads, attention.head_dim, attention.value_dim

    def declare(self, mechanism: Mechanism, sizes: tuple[int, int, int], seed: int, names: list[str]) -> None:
        """Register a mechanism's learned parameters at their initial values."""
        declared = mechanism.parameters(*sizes)
        for name, value in initial_values(mechanism, *sizes, seed).items():
            value = value if declared[name].per == "head" else value[:1]
            names.append(name)
            self.register_parameter(name, nn.Parameter(value.to(torch.get_default_dtype(), copy=True)))
            if not declared[name].decays:
                self.undecayed.append(name)

    def borrow(self, name: str, lender: Layer) -> None:
        """Use another layer's parameter in place of an own one."""
        delattr(self, name)
        self.undecayed.remove(name)
        # In a tuple, so that the other layer does not become a submodule of this one.
        self.lenders[name] = (lender,)

    def move_to(self, progress: float | None) -> None:
        """Let scheduled stages be as they are at this point of training; None: `set_progress` was not called yet."""
        self.progress = progress
        self.acting = tuple(_make_acting(stage, progress or 0.0) for stage in self.values)
        self.core = dataclasses.replace(self.mechanism, values=(), share=Share()).at(progress or 0.0)
        # Made now, since torch.compile cannot trace how a stage checks its arguments.
        self.scaled = {scale: self.core_at_scale(scale) for scale in self.scaled}

    def check_progress(self, stage: Stage) -> None:
        """Refuse to train with a scheduled stage before the model was told how far training is."""
        if self.progress is None and self.training and stage.is_scheduled:
            raise InstallError(
                f"'{stage}' changes while training: call attnlab.install.set_progress(model, fraction) before each "
                "step, with a fraction from 0 to 1"
            )

    def parameters_of(self, acting: Acting) -> Mapping[str, Tensor]:
        """Return the parameters of a values stage under the names it gives them."""
        found = {}
        for name, full in acting.names:
            (holder,) = self.lenders.get(full, (self,))
            found[name] = getattr(holder, full)
        return acting.stage.parameters_at(found, self.progress or 0.0)

    def at_scale(self, scale: float | None) -> Mechanism:
        """Return what is attended by: with the model's own scale, where the score is a dot product without one."""
        if scale is None or not self.core.score.takes_scale:
            return self.core
        if scale not in self.scaled:
            self.scaled[scale] = self.core_at_scale(scale)
        return self.scaled[scale]

    def core_at_scale(self, scale: float) -> Mechanism:
        """Return the core with this scale in its score, where it takes one."""
        score: Any = self.core.score
        if not score.takes_scale:
            return self.core
        return dataclasses.replace(self.core, score=dataclasses.replace(score, scale=scale))

    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, rule: Rule, scale: float | None, dropout: float, is_shown: bool,
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        """Attend; return the output [b h q d], and the weights [b h q k] where they are to be shown."""
        self.check(v, rule)
        positions = self.locate(rule, q, k)
        k, v, rule = self.behind_prefix(k, v, rule)
        core = self.at_scale(scale)
        parameters = self.core_parameters()
        out = attend(
            q, k, v, core, causal=rule.causal, mask=rule.mask,
            parameters=parameters, dropout=dropout, training=self.training, positions=positions,
        )  # fmt: skip
        if not is_shown:
            return out, None
        return out, weights(q, k, core, causal=rule.causal, mask=rule.mask, parameters=parameters, positions=positions)

    def core_parameters(self) -> dict[str, Tensor]:
        """Return the learned parameters of the core, as its schedules scale them."""
        parameters = {name: getattr(self, name) for name in self.learned}
        for text, stage in self.scheduled:
            self.check_progress(stage)
            own = stage.parameters_at(self.core.params_of(stage, parameters), self.progress or 0.0)
            parameters |= {f"{text}_{name}": value for name, value in own.items()}
        return parameters

    def locate(self, rule: Rule, q: Tensor, k: Tensor) -> Positions | None:
        """Return where queries and keys stand, with the prefix before all tokens, if a stage asks for it."""
        asking = self.core.stages_asking("positions")
        if not asking:
            return None
        found = rule.locate(q.shape[2], k.shape[2], q.device)
        if found is None:
            raise InstallError(
                f"'{asking[0]}' asks for positions, and '{self.attention_name}' was given a mask of its own over "
                f"{k.shape[2]} keys for {q.shape[2]} queries, which does not say where they stand; leave the mask to "
                "the model (a padding mask [batch, length], or none)"
            )
        if self.prefix_keys is None:
            return found
        before = torch.arange(-self.prefix_keys.shape[1], 0, device=q.device)
        return Positions(found.queries, torch.cat([before.expand(*found.keys.shape[:2], -1), found.keys], -1))

    def behind_prefix(self, k: Tensor, v: Tensor, rule: Rule) -> tuple[Tensor, Tensor, Rule]:
        """Put the layer's prefix, where it has one, before the keys and values; every query may see it."""
        keys, values = self.prefix_keys, self.prefix_values
        if keys is None or values is None:
            return k, v, rule
        if k.shape[1] != keys.shape[0]:
            raise InstallError(
                f"'{self.attention_name}' attends with {k.shape[1]} key heads, and its prefix was made for "
                f"{keys.shape[0]}"
            )
        # A cache hands over all earlier tokens, and never held the prefix: here it comes once, whatever the call.
        k, v = (torch.cat([own.to(t.dtype).expand(len(t), -1, -1, -1), t], 2) for own, t in ((keys, k), (values, v)))
        if rule.mask is None:
            return k, v, rule
        return k, v, dataclasses.replace(rule, mask=nn.functional.pad(rule.mask, (keys.shape[1], 0), value=True))

    def penalties(self, out: Tensor) -> list[Tensor]:
        """Return what the output stages add to the loss."""
        if not self.has_penalty:
            return []
        return [term for stage in self.core.output if (term := stage.penalty(out)) is not None]

    def check(self, v: Tensor, rule: Rule) -> None:
        """Refuse a mask the mechanism cannot mean, and values that did not come from where they were taken to."""
        if rule.is_instead and self.mechanism.mask.where != "before":
            raise InstallError(
                f"'{self.mechanism.mask}' acts on the causal rule, but '{self.attention_name}' was given single pairs "
                "instead (a sliding window, packed sequences, a static cache or a mask of your own)"
            )
        expected, self.expected = self.expected, None
        # A cache of fixed size holds more than was projected, and where is not known: the next pass will tell.
        if expected is not None and v.shape[2] == expected.shape[2]:
            self.is_proved = True
            if not torch.equal(v, expected):
                raise InstallError(
                    f"'{self.attention_name}' lays out its fused projection in another way than queries, keys, values; "
                    f"'{self.mechanism}' acts on projections and cannot be put there"
                )

    def __getstate__(self) -> dict[str, object]:
        """Leave out what belongs to a pass."""
        return {**self.__dict__, "expected": None}

    def extra_repr(self) -> str:
        """Show the line."""
        return f"'{self.mechanism}'"


def _has_parameters(mechanism: Mechanism) -> bool:
    """Tell whether a mechanism has learned parameters, whatever the sizes."""
    return bool(mechanism.parameters(1, 1))


def _make_acting(stage: Value, progress: float) -> Acting:
    """Return a values stage as it is at a point of training."""
    own = f"{label(stage)}_"
    declared = dataclasses.replace(Mechanism(), values=(stage,)).parameters(1, 1)
    return Acting(stage.at(progress), tuple((name.removeprefix(own), name) for name in declared))


def list_shared_parameters(stage: Value) -> list[str]:
    """Return the names of the parameters that a stage learns once for all layers."""
    declared = dataclasses.replace(Mechanism(), values=(stage,)).parameters(1, 1)
    return [name for name, parameter in declared.items() if parameter.per == "model"]


def has_penalty(mechanism: Mechanism) -> bool:
    """Tell whether an output stage adds to the loss."""
    probe = torch.zeros(1, 1, 1, 1)
    return any(stage.penalty(probe) is not None for stage in mechanism.output)
