"""The submodule `attnlab` of an attention module: a mechanism with its learned parameters.

They train, move, save and load like any weight of the model.
"""

import dataclasses
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn

from attnlab.errors import InstallError
from attnlab.kernels import attend, attend_with_weights, initial_values
from attnlab.mechanisms import (
    Features,
    LayerInput,
    Line,
    Mechanism,
    Parameter,
    Positions,
    SharedProjections,
    Stage,
    Value,
)
from attnlab.mechanisms.mechanism import label

from .attention_modules import AttentionModule
from .layer_input import Earlier, ModuleCall, find_earlier, recall_input
from .masks import MaskRule, separates_neighbours
from .own_parts import OwnBias, OwnPart
from .projections import Part

PREFIX = ("prefix_keys", "prefix_values")
"""The parameters [h n d] of a layer that `set_prefix` makes; None without a prefix."""


ARGUMENTS = {"sinks": "s_aux", "cap": "softcap", "relative bias": "position_bias"}
"""The arguments by which a model passes what it has of its own to its attention function."""


class ActiveStage(NamedTuple):
    """A values stage at the current point of training, and the names of its parameters: the stage's and the layer's."""

    stage: Value
    names: tuple[tuple[str, str], ...]


class Layer(nn.Module):
    """A mechanism in one attention module.

    `values` are its values stages that act here, `features` those that act before positions. Both act where the
    projections are computed (`valuepath`), since x and the new tokens are known only there; `core` is the rest of the
    mechanism. `num_layers` is the number of attention modules of the model. `replaces_weights`: the attention module's
    own weights are not used.
    """

    replaces_weights = False
    omits_attentions = False

    def __init__(
        self, mechanism: Mechanism, values: tuple[Value, ...], attention: AttentionModule, seed: int,
        num_layers: int = 1,
    ) -> None:  # fmt: skip
        super().__init__()
        self.mechanism = mechanism
        self.features = mechanism.early_features
        self.index, self.num_layers = attention.index or 0, num_layers
        self.cache_index: int | None = getattr(attention.module, "layer_idx", None)
        self.called: ModuleCall | None = None
        self.line: Line = mechanism  # what is installed in the whole model; `install` sets a line by layer
        self.attention_function = ""  # the name under which transformers calls it, which `install` sets
        # A mask of pairs, as of a static cache, does not tell whether attention is causal; the module does.
        self.is_causal = attention.is_causal
        self.own_bias: OwnBias | None = None
        self.known_arguments: frozenset[str] = frozenset()
        self.is_bias_checked = False
        self.core = self._make_core()
        self.values = values
        needing_x = self.core.find_stages_needing("x")
        self.needs_x = bool(needing_x)
        self.needs_x_of_keys = any(stage.slot != "output" for stage in needing_x)
        self.num_earlier = mechanism.num_earlier
        self.keeps_x = self.needs_x_of_keys or self.num_earlier > 0
        self.scheduled = [(text, stage) for text, stage in self.core.label_stages() if stage.is_scheduled]
        self.attention_name, self.stack = attention.name, attention.stack
        self.undecayed: list[str] = []
        self.tables: list[str] = []
        self.owners: dict[str, tuple[Self]] = {}
        self.expected: Tensor | None = None
        self.is_layout_checked = False
        self.num_key_heads: int | None = None  # of heads(kv=N), if `install` has narrowed the projections
        scales = (getattr(attention.module, "scaling", None), attention.head_dim and attention.head_dim**-0.5)
        self.scaled: dict[float, Mechanism] = {scale: self.core for scale in scales if isinstance(scale, float)}
        self.has_penalty = has_penalty(mechanism)
        self.prefix_keys: nn.Parameter | None
        self.prefix_values: nn.Parameter | None
        for name in PREFIX:
            self.register_parameter(name, None)
        # An initial value depends on the seed, the layer's name and the parameter's, and on no other weight.
        layer_seed = zlib.crc32(f"{attention.name}:{seed}".encode())
        self.learned = self._declare(self.core, attention, "q", layer_seed)
        self._declare(Mechanism(features=self.features), attention, "q", layer_seed)
        for stage in values:
            self._declare(Mechanism(values=(stage,)), attention, stage.target, layer_seed)
        self.move_to(None)

    def _make_core(self) -> Mechanism:
        """Return the mechanism without what acts on the projections."""
        scheme = self.mechanism.positions
        if scheme.is_of_model and self.own_bias is not None:
            scheme = self.own_bias.scheme
        scheme = scheme if self.is_causal is None else scheme.choose_direction(self.is_causal)
        late = tuple(stage for stage in self.mechanism.features if not stage.acts_before_positions)
        return dataclasses.replace(
            self.mechanism, values=(), features=late, share=SharedProjections(), kv_heads=None, positions=scheme,
            mixer=None,
        )  # fmt: skip

    def _declare(self, mechanism: Mechanism, attention: AttentionModule, part: Part, seed: int) -> list[str]:
        """Register a mechanism's learned parameters at their initial values; return their names."""
        if not mechanism.parameters(1, 1):
            return []
        num_heads = attention.heads_of(part)
        if num_heads is None or attention.head_dim is None or attention.value_dim is None:
            raise InstallError(
                f"'{attention.name}' ({type(attention.module).__name__}) does not say how many heads it has and how "
                "wide they are, which determine the shapes of the mechanism's learned parameters"
            )
        sizes = num_heads, attention.head_dim, attention.value_dim
        more = {"num_layers": self.num_layers, "model_dim": _find_model_dim(mechanism, attention)}
        more["vocab_size"] = _find_vocab_size(mechanism, attention)
        more["num_key_heads"] = num_heads if part != "q" else attention.num_key_heads or num_heads
        declared = mechanism.parameters(*sizes, self.index, **more)
        for name, value in initial_values(mechanism, *sizes, seed, self.index, **more).items():
            value = value if declared[name].per == "head" else value[:1]
            self.register_parameter(name, nn.Parameter(value.to(torch.get_default_dtype(), copy=True)))
            if not declared[name].has_weight_decay:
                self.undecayed.append(name)
            if declared[name].is_table:
                self.tables.append(name)
        return list(declared)

    def share_parameter(self, name: str, owner: Self) -> None:
        """Use the parameter of another layer instead of its own."""
        delattr(self, name)
        self.undecayed.remove(name)
        # In a tuple, so that the other layer does not become a submodule of this one.
        self.owners[name] = (owner,)

    def know_parts(self, parts: Mapping[str, OwnPart], own_bias: OwnBias | None, has_position_bias: bool) -> None:
        """Tell the layer what its attention module has of its own."""
        arguments = {ARGUMENTS[name] for name in parts if name in ARGUMENTS}
        self.known_arguments = frozenset(arguments | ({ARGUMENTS["relative bias"]} if has_position_bias else set()))
        self.own_bias = own_bias
        self.move_to(self.progress)

    def check_position_bias(self, bias: Tensor, rule: MaskRule, num_queries: int, num_keys: int) -> None:
        """Compare the bias that the model passes, once, with the one that attnlab reads from it."""
        # With a static cache the queries are not the last keys.
        is_aligned = self.own_bias is None or rule.causal or num_queries == num_keys
        if self.is_bias_checked or torch.compiler.is_compiling() or not is_aligned:
            return
        self.is_bias_checked = True
        expected = torch.zeros_like(bias) if self.own_bias is None else self.own_bias.compute(num_queries, num_keys)
        if bias.shape != expected.shape or not torch.allclose(bias, expected.to(bias), rtol=1e-3, atol=1e-5):
            raise InstallError(
                f"'{self.attention_name}' adds a position bias to its scores that is not the relative bias of its "
                f"stack, so that '{self.mechanism}' cannot be installed there"
            )

    def move_to(self, progress: float | None) -> None:
        """Set scheduled stages to this point of training; None if `set_progress` was not called yet."""
        self.progress = progress
        self.acting = tuple(
            ActiveStage(
                stage.at(progress or 0.0),
                tuple((name.removeprefix(f"{label(stage)}_"), name) for name in _declare_parameters(stage)),
            )
            for stage in self.values
        )
        self.core = self._make_core().at(progress or 0.0)
        # Made now, since torch.compile cannot trace how a stage checks its arguments.
        self.scaled = {scale: self._set_scale(scale) for scale in self.scaled}

    def check_progress(self, stage: Stage) -> None:
        """Refuse to train with a scheduled stage before `set_progress` was called."""
        if self.progress is None and self.training and stage.is_scheduled:
            raise InstallError(
                f"'{stage}' changes while training: call attnlab.install.set_progress(model, fraction) before each "
                "step, with a fraction from 0 to 1 (under Trainer in on_step_begin of a TrainerCallback)"
            )

    def parameters_of(self, acting: ActiveStage) -> Mapping[str, Tensor]:
        """Return the parameters of a values stage by the stage's names."""
        parameters = {name: getattr(self.owners.get(full, (self,))[0], full) for name, full in acting.names}
        return acting.stage.parameters_at(parameters, self.progress or 0.0)

    def at_scale(self, scale: float | None) -> Mechanism:
        """Return the core with the model's scale, if its score is a dot product without one."""
        if scale is None or not self.core.score.takes_scale:
            return self.core
        if scale not in self.scaled:
            self.scaled[scale] = self._set_scale(scale)
        return self.scaled[scale]

    def _set_scale(self, scale: float) -> Mechanism:
        score: Any = self.core.score
        if not score.takes_scale:
            return self.core
        return dataclasses.replace(self.core, score=dataclasses.replace(score, scale=scale))

    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, rule: MaskRule, scale: float | None, dropout: float, needs_weights: bool,
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        """Attend; return the output [b h q d], and the weights [b h q k] if they are needed."""
        self._check(v, rule)
        x = self._recall_input(k)
        positions = self._locate(rule, q, k)
        k, v, rule = self._add_prefix(k, v, rule)
        core = self.at_scale(scale)
        options: dict[str, Any] = {
            "causal": rule.causal, "mask": rule.mask, "parameters": self._get_core_parameters(), "dropout": dropout,
            "training": self.training, "positions": positions, "x": x, "layer": self.index,
        }  # fmt: skip
        if needs_weights:
            return attend_with_weights(q, k, v, core, **options)
        return attend(q, k, v, core, **options), None

    def _recall_input(self, k: Tensor) -> LayerInput | None:
        """Return the layer's input at queries and keys if a stage needs it, and keep it in the cache."""
        if not self.needs_x and not self.keeps_x:
            return None
        call, self.called = self.called, None
        if call is None:
            raise InstallError(
                f"'{self.attention_name}' computes attention outside a call of its module, so that its input is unknown"
            )
        if not self.keeps_x:
            return LayerInput(call.x, call.x[:, :0])
        x = recall_input(call, self.cache_index, self.num_layers, k.shape[2])
        return x if self.needs_x else None

    def find_earlier_tokens(self, module: nn.Module) -> Earlier:
        """Return what is known of the tokens before those that the attention module was called with."""
        assert self.called is not None
        return find_earlier(self.called, module, self.cache_index, self.num_layers, self.num_earlier)

    def feature_parameters(self, stage: Features) -> Mapping[str, Tensor]:
        """Return the parameters of a feature before positions by the stage's names."""
        names = Mechanism(features=(stage,)).parameters(1, 1)
        return {name.removeprefix(f"{label(stage)}_"): getattr(self, name) for name in names}

    def _get_core_parameters(self) -> dict[str, Tensor]:
        """Return the learned parameters of the core, at the current point of their schedules."""
        parameters = {name: getattr(self.owners.get(name, (self,))[0], name) for name in self.learned}
        if self.own_bias is not None and self.mechanism.positions.is_of_model:
            parameters |= self.own_bias.list_parameters()
        for text, stage in self.scheduled:
            self.check_progress(stage)
            current = stage.parameters_at(self.core.params_of(stage, parameters), self.progress or 0.0)
            parameters |= {f"{text}_{name}": value for name, value in current.items()}
        return parameters

    def _locate(self, rule: MaskRule, q: Tensor, k: Tensor) -> Positions | None:
        """Return the positions of queries and keys, with the prefix before all tokens, if a stage needs them."""
        stages = self.core.find_stages_needing("positions")
        if not stages:
            return None
        positions = rule.locate(q.shape[2], k.shape[2], q.device)
        if positions is None:
            stage, hint = f"'{stages[0]}'", ""
            if self.own_bias is not None and self.mechanism.positions.is_of_model:
                stage = f"'{stages[0]}', which the model itself has,"
                hint = f"install '{self.mechanism} | {label(self.own_bias.scheme)}', or "
            raise InstallError(
                f"{stage} asks for positions, and '{self.attention_name}' was given a mask over {k.shape[2]} keys for "
                f"{q.shape[2]} queries, which does not determine them, as with a static cache: {hint}use no static "
                "cache, and a padding mask [batch, length] or none"
            )
        if self.prefix_keys is None:
            return positions
        before = torch.arange(-self.prefix_keys.shape[1], 0, device=q.device).expand(*positions.keys.shape[:2], -1)
        return Positions(positions.queries, torch.cat([before, positions.keys], -1))

    def _add_prefix(self, k: Tensor, v: Tensor, rule: MaskRule) -> tuple[Tensor, Tensor, MaskRule]:
        """Put the layer's prefix, if any, before the keys and values; every query may see it."""
        keys, values = self.prefix_keys, self.prefix_values
        if keys is None or values is None:
            return k, v, rule
        if k.shape[1] != keys.shape[0]:
            raise InstallError(
                f"'{self.attention_name}' attends with {k.shape[1]} key heads, and its prefix was made for "
                f"{keys.shape[0]}"
            )
        # A cache passes all earlier tokens without the prefix, so it is added once in every call.
        k, v = (torch.cat([p.to(t.dtype).expand(len(t), -1, -1, -1), t], 2) for p, t in ((keys, k), (values, v)))
        if rule.mask is None:
            return k, v, rule
        return k, v, dataclasses.replace(rule, mask=nn.functional.pad(rule.mask, (keys.shape[1], 0), value=True))

    def penalties(self, out: Tensor) -> list[Tensor]:
        """Return the terms that the output stages add to the loss."""
        if not self.has_penalty:
            return []
        return [term for stage in self.core.output if (term := stage.penalty(out)) is not None]

    def _check(self, v: Tensor, rule: MaskRule) -> None:
        """Refuse a mask that the mask stage cannot act on, and values that are not those of the value path."""
        if rule.replaces_causal and self.mechanism.causal.where != "before":
            raise InstallError(
                f"'{self.mechanism.causal}' acts on the causal mask, but '{self.attention_name}' was given single "
                "pairs instead (a sliding window, packed sequences, a static cache or a custom mask)"
            )
        # The content of a mask is not known while tracing.
        if self.mechanism.delta is not None and not torch.compiler.is_compiling() and separates_neighbours(rule.mask):
            raise InstallError(
                f"'{self.mechanism.delta}' corrects values by all keys before, and '{self.attention_name}' was given "
                "packed sequences, or another mask by which a token does not see the one before it; give each "
                "sequence a row of its own, with a padding mask"
            )
        if self.num_key_heads not in (None, v.shape[1]):
            raise InstallError(
                f"'{self.attention_name}' divides its narrower projections into {v.shape[1]} heads of keys and values "
                f"instead of {self.num_key_heads}, so that it cannot take '{self.mechanism.kv_heads}'; uninstall it"
            )
        expected, self.expected = self.expected, None
        # A static cache is longer than the projected values, so they are compared in a later pass.
        if expected is not None and v.shape[2] == expected.shape[2]:
            self.is_layout_checked = True
            if not torch.equal(v, expected):
                raise InstallError(
                    f"'{self.attention_name}' lays out its fused projection in another way than queries, keys, values; "
                    f"'{self.mechanism}' acts on projections and cannot be installed there"
                )

    def __getstate__(self) -> dict[str, object]:
        """Exclude the state of a forward pass."""
        return {**self.__dict__, "expected": None, "called": None}

    def extra_repr(self) -> str:
        """Show the line."""
        return f"'{self.mechanism}'"


def takes_calls(mechanism: Mechanism) -> bool:
    """Tell whether a layer must know what its attention module is called with."""
    return mechanism.num_earlier > 0 or bool(mechanism.find_stages_needing("x"))


def _find_model_dim(mechanism: Mechanism, attention: AttentionModule) -> int:
    """Return the width of the layer's input, or 0 if no stage needs it."""
    if not mechanism.find_stages_needing("x"):
        return 0
    if attention.model_dim is None:
        raise InstallError(
            f"'{mechanism}' needs the width of the layer's input, and the structure of '{attention.name}' "
            f"({type(attention.module).__name__}) is not recognised"
        )
    return attention.model_dim


def _find_vocab_size(mechanism: Mechanism, attention: AttentionModule) -> int:
    """Return the size of the model's vocabulary, or 1 if no stage needs token ids."""
    stages = mechanism.find_stages_needing("tokens")
    if not stages:
        return 1
    size = getattr(attention.config, "vocab_size", None)
    if not isinstance(size, int) or size < 1:
        raise InstallError(
            f"'{stages[0]}' needs token ids, and the config of '{attention.name}' ({type(attention.module).__name__}) "
            "has no vocab_size; use a model that takes tokens"
        )
    return size


def _declare_parameters(stage: Value) -> dict[str, Parameter]:
    return Mechanism(values=(stage,)).parameters(1, 1)


def list_shared_parameters(stage: Value) -> list[str]:
    """List the names of the parameters that a stage learns once for all layers."""
    return [name for name, parameter in _declare_parameters(stage).items() if parameter.per == "model"]


def has_penalty(mechanism: Mechanism) -> bool:
    """Tell whether an output stage adds to the loss."""
    probe = torch.zeros(1, 1, 1, 1)
    return any(stage.penalty(probe) is not None for stage in mechanism.output)
