"""A mixer in a model: a module of the user in place of what an attention module computes.

The attention module's own weights stay in the model, unused and frozen, so that `uninstall` brings them back. A mixer
without a method `step` has nothing to keep in a cache, so that models with one compute without a cache.
"""

import zlib
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from attnlab.errors import InstallError, MechanismError, ShapeError
from attnlab.mechanisms import Line, Mechanism, Mixer, Value

from .attention_modules import AttentionModule
from .body import has_cross_attention
from .compat import records_attentions
from .layer import Layer
from .layer_input import AttentionCall, ModuleCall
from .masks import read_mask
from .mixer_cache import StateLayer, find_state_layer
from .projections import check_forward


class MixerLayer(Layer):
    """The layer of an attention module whose computation a mixer replaces; `module` is the user's module."""

    replaces_weights = True

    def __init__(self, mechanism: Mechanism, attention: AttentionModule, seed: int, num_layers: int = 1) -> None:
        super().__init__(mechanism, (), attention, seed, num_layers)
        assert mechanism.mixer is not None
        self.mixer = mechanism.mixer
        # The constructor draws from torch's generator: from a state that depends on the seed and the layer's name.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(zlib.crc32(f"{attention.name}:mixer:{seed}".encode()))
            self.module = _build(self.mixer, attention, self.index, num_layers)

    def mix(self, x: Tensor, mask: Tensor | None, kept: StateLayer | None) -> Tensor:
        """Return the module's output [b n m], by a step if there is a cache, which keeps its state.

        mask: [b k], False at padding, where x is set to 0.
        """
        if mask is None:
            mask = x.new_ones(x.shape[:2], dtype=torch.bool)
        else:
            mask = mask[:, mask.shape[1] - x.shape[1] :]  # with a cache, a mask has the earlier tokens too
            x = x.masked_fill(~mask[..., None], 0)
        given = {"mask": mask} if self.mixer.takes_mask("forward" if kept is None else "step") else {}
        if kept is None:
            return self._check_output(self.module(x, **given), x)
        result = self.module.step(x, kept.state, **given)  # type: ignore[operator]
        if not isinstance(result, tuple) or len(result) != 2 or not isinstance(result[1], Tensor):
            raise ShapeError(f"step of '{self.mixer}' must return a pair, the output and the new state, a tensor")
        out, state = result
        if state.dim() == 0 or len(state) != len(x):
            raise ShapeError(
                f"the state of '{self.mixer}' must have the batch as its first axis, here {len(x)}; its shape is "
                f"{tuple(state.shape)}"
            )
        kept.keep(x, state)
        return self._check_output(out, x)

    def _check_output(self, out: object, x: Tensor) -> Tensor:
        """Return the output in the dtype of x; refuse another shape."""
        if not isinstance(out, Tensor) or out.shape != x.shape or not out.is_floating_point():
            given = f"{tuple(out.shape)} of {out.dtype}" if isinstance(out, Tensor) else type(out).__name__
            raise ShapeError(
                f"'{self.mixer}' must return floats [batch, length, width] = {tuple(x.shape)}, not {given}"
            )
        return out.to(x.dtype)


class MixerCall(AttentionCall):
    """Replaces the forward of an attention module by that of its mixer, and freezes its own weights."""

    def __init__(self, attention: nn.Module) -> None:
        super().__init__(attention)
        own = {id(parameter) for parameter in attention.attnlab.parameters()}  # type: ignore[union-attr]
        self.frozen = [p for p in attention.parameters() if p.requires_grad and id(p) not in own]
        for parameter in self.frozen:
            parameter.requires_grad_(False)

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Compute the mixer; return its output, and no attention weights."""
        layer: Any = self.module.attnlab
        call = self.read(args, options)
        if call.cache is not None and not layer.mixer.has_step:
            raise InstallError(
                f"'{layer.mechanism}' has no method `step` and cannot use a cache; call the model, or generate, with "
                "use_cache=False and without past_key_values"
            )
        kept = None if call.cache is None else find_state_layer(call.cache, layer.cache_index, layer.mixer)
        if not layer.omits_attentions and (bool(options.get("output_attentions")) or records_attentions()):
            raise InstallError(
                f"'{layer.mechanism}' has no attention weights; call the model without output_attentions"
            )
        return layer.mix(call.x, self._find_tokens(call), kept), None

    def _find_tokens(self, call: ModuleCall) -> Tensor | None:
        """Return which tokens are no padding [b k], or None if all are; refuse a mask that forbids single pairs."""
        rule = None if call.mask is None else read_mask(call.mask, self.module, None)
        if rule is None or rule.mask is None:
            return None
        if rule.mask.shape[2] > 1 and rule.mask.shape[3] > 1:
            layer: Any = self.module.attnlab
            raise InstallError(
                f"'{layer.attention_name}' was given a mask of single pairs (a sliding window, packed sequences, a "
                "custom mask, or torch.compile, under which masks are pairs), which "
                f"'{layer.mechanism}' cannot follow; use whole sequences with a padding mask, without torch.compile"
            )
        return rule.mask[:, 0, 0]

    def undo(self) -> None:
        """Restore the forward, and let the module's own weights train again."""
        super().undo()
        for parameter in self.frozen:
            parameter.requires_grad_()


class DisabledCache:
    """Sets `use_cache` of a model's configs to False, so that calls and `generate` make no cache."""

    def __init__(self, body: PreTrainedModel) -> None:
        holders: list[Any] = [body.config, body.config.get_text_config(), getattr(body, "generation_config", None)]
        parts = [part.config for part in body.modules() if isinstance(part, PreTrainedModel)]
        unique: dict[int, Any] = {id(holder): holder for holder in (*holders, *parts) if hasattr(holder, "use_cache")}
        self.before = [(holder, holder.use_cache) for holder in unique.values()]
        for holder, _ in self.before:
            holder.use_cache = False

    def undo(self) -> None:
        """Restore the settings."""
        for holder, value in self.before:
            holder.use_cache = value


def refuses_cache(line: Line) -> bool:
    """Tell whether some layer has a mixer that cannot use a cache."""
    return any(mechanism.mixer is not None and not mechanism.mixer.has_step for mechanism in line.distinct)


def make_layer(
    mechanism: Mechanism, values: tuple[Value, ...], attention: AttentionModule, seed: int, num_layers: int = 1
) -> Layer:
    """Make the layer of an attention module: with a mixer, or with a mechanism over pairs."""
    if mechanism.mixer is None:
        return Layer(mechanism, values, attention, seed, num_layers)
    check_forward(attention.module)
    if attention.bridge is not None:
        raise InstallError(
            f"'{attention.name}' ({type(attention.module).__name__}) computes attention by itself: attnlab replaces "
            f"only that, not the whole module, so that it cannot take '{mechanism}'"
        )
    return MixerLayer(mechanism, attention, seed, num_layers)


def check_body(line: Line, body: PreTrainedModel) -> None:
    """Refuse a mixer in a model with cross-attention, whose layers have two inputs."""
    for mechanism in line.distinct:
        if mechanism.mixer is not None and has_cross_attention(body):
            raise InstallError(
                f"'{mechanism}' maps one sequence to another of the same length, and the cross-attention of this "
                f"{type(body).__name__} has two; use a model without cross-attention"
            )


def _build(mixer: Mixer, attention: AttentionModule, layer: int, num_layers: int) -> nn.Module:
    options: dict[str, Any] = {"num_heads": attention.num_heads, "layer": layer, "num_layers": num_layers}
    options["is_causal"] = attention.is_causal
    try:
        return mixer.build(_find_width(mixer, attention), **options)
    except MechanismError as error:
        raise InstallError(f"'{attention.name}': {error}") from error.__cause__


def _find_width(mixer: Mixer, attention: AttentionModule) -> int:
    """Return the width of an attention module's input and output."""
    width = attention.model_dim or getattr(attention.config, "hidden_size", None)
    if not isinstance(width, int):
        raise InstallError(
            f"'{mixer}' needs the width of the layer's input, and the structure of '{attention.name}' "
            f"({type(attention.module).__name__}) is not recognised"
        )
    return width
