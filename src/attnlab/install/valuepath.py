"""The values stages in a model, V' = V + α·act(x) and the like, and features before positions, such as norms of q and
k: applied where the projection is computed.

The attention function does not get the layer's input, and a cache holds the keys and values of earlier tokens. The
projection gets the input of exactly the new tokens, so cached generation stays correct. A stage that requests `before`
also gets the tokens before these, which are projected again from the x that the cache keeps.
"""

import functools

import torch
from torch import Tensor, nn
from torch.nn import functional

from attnlab.errors import InstallError
from attnlab.mechanisms import Features, Mechanism, Value
from attnlab.mechanisms.earlier_tokens import stack_earlier
from attnlab.mechanisms.stage import check_result

from .attention_modules import AttentionModule
from .layer import Layer
from .layer_input import Earlier
from .pass_context import get_pass_context
from .projections import Part, Projection, StandIn, check_forward, describe_unknown, in_width


class ValuePath(StandIn):
    """Replaces the forward of the module that computes a projection, and changes some parts of its output."""

    def __init__(self, attention: AttentionModule, parts: tuple[Part, ...]) -> None:
        assert attention.projections is not None
        # The attention module, not its layer, which peft may replace with a trained copy.
        self.attention = attention.module
        self.changed = [(part, attention.projections[part], attention.heads_of(part) or 1) for part in parts]
        self.is_fused = self.changed[0][1].is_fused
        self.take_place(self.changed[0][1].module)

    def __call__(self, x: Tensor) -> Tensor:
        """Project, and apply the stages to the result."""
        layer: Layer = self.attention.attnlab  # type: ignore[assignment]
        if not layer.num_earlier or not any(layer.mechanism.count_earlier_tokens(part) for part, _, _ in self.changed):
            return self._project(x, layer, None)
        earlier = layer.find_earlier_tokens(self.attention)
        # The last tokens before are projected again: the cache holds their keys and values after the stages.
        output = self._project(torch.cat([earlier.x.to(x), x], 1), layer, earlier)
        return output[:, earlier.x.shape[1] :]

    def _project(self, x: Tensor, layer: Layer, earlier: Earlier | None) -> Tensor:
        output = self.original(x)
        num_earlier = 0 if earlier is None else earlier.x.shape[1]
        for part, projection, num_heads in self.changed:
            has_adapter = getattr(self.attention, projection.name) is not self.module
            t = raw = projection.cut(output)
            for acting in layer.acting:
                stage = acting.stage
                if stage.target == part:
                    if has_adapter:
                        _check_adapter(stage, projection, getattr(self.attention, projection.name))
                    layer.check_progress(stage)
                    num_parts = num_heads if stage.acts_by_head else 1
                    source = x if x.shape[-1] == projection.width else raw
                    heads, inputs, first = (_split_heads(each, num_parts) for each in (t, source, raw))
                    if stage.uses_first:
                        first = self._find_first_values(layer.stack, first)
                    given = {}
                    if "tokens" in stage.inputs:
                        given["tokens"] = self._find_tokens(stage, x, num_earlier)
                    if "before" in stage.inputs:
                        assert earlier is not None
                        given["before"] = stack_earlier(stage, heads, functools.partial(_shift, earlier=earlier))
                    changed = stage(heads, inputs, first, layer.parameters_of(acting), **given)
                    check_result(stage, changed, heads.shape)
                    t = changed.to(t.dtype).transpose(1, 2).flatten(2)
            t = self._apply_features(t, part, projection, num_heads, layer, earlier)
            output = projection.replace(output, t)
            is_pending = self.is_fused and not layer.is_layout_checked
            if part == "v" and is_pending and not has_adapter and not torch.compiler.is_compiling():
                layer.expected = _split_heads(t.detach()[:, num_earlier:], num_heads)
        return output

    def _find_first_values(self, stack: str, values: Tensor) -> Tensor:
        """Return the first layer's values [b h n d] at the tokens of some others, which may be more or fewer."""
        first = get_pass_context(self.attention).get_first_values(stack, values)
        # `install` refuses stages that would need more of them.
        return functional.pad(first, (0, 0, values.shape[2] - first.shape[2], 0))

    def _find_tokens(self, stage: Value, x: Tensor, num_earlier: int) -> Tensor:
        """Return the token ids of the input x [b n m]."""
        context = get_pass_context(self.attention)
        tokens = context.get_tokens(stage, x.shape[0], x.shape[1] - num_earlier)
        # What the stage makes of earlier tokens is not used (`check_order`), so their ids may be any.
        return functional.pad(tokens, (num_earlier, 0)) if num_earlier else tokens

    def _apply_features(
        self, t: Tensor, part: Part, projection: Projection, num_heads: int, layer: Layer, earlier: Earlier | None
    ) -> Tensor:
        """Apply the features that act before positions to queries or keys [b n w]."""
        for stage in layer.features if part != "v" else ():
            if part not in stage.sides:
                continue
            if (adapter := getattr(self.attention, projection.name)) is not self.module:
                _check_adapter(stage, projection, adapter)
            heads, given = _split_heads(t, num_heads), {}
            if "before" in stage.inputs:
                assert earlier is not None
                given["before"] = stack_earlier(stage, heads, functools.partial(_shift, earlier=earlier))
            changed = stage(heads, part, layer.feature_parameters(stage), **given)
            check_result(stage, changed, heads.shape)
            t = changed.to(t.dtype).transpose(1, 2).flatten(2)
        return t


def _shift(t: Tensor, earlier: Earlier) -> Tensor:
    """Return the projection [b h n d] of the token before each; zeros if there is none, or padding."""
    before = torch.cat([torch.zeros_like(t[:, :, :1]), t[:, :, :-1]], 2)
    if earlier.is_token is None:
        return before
    return before.masked_fill(~earlier.is_token[:, None, :, None], 0)


def _check_adapter(stage: Value | Features, projection: Projection, adapter: nn.Module) -> None:
    """Refuse a stage and an adapter one of which multiplies: after merging, their order would be reversed."""
    if not isinstance(stage, Value) or not stage.only_adds:
        raise InstallError(
            f"'{stage}' changes '{projection.name}' below an adapter (peft), which adds to it afterwards; leave "
            f"'{projection.name}' out of target_modules, or merge the adapter first"
        )
    if not hasattr(adapter, "lora_A"):
        raise InstallError(
            f"'{stage}' adds to '{projection.name}' below an adapter ({type(adapter).__name__}) that does more than "
            f"add; leave '{projection.name}' out of target_modules"
        )


def make_paths(attention: AttentionModule, stages: tuple[Value, ...], mechanism: Mechanism) -> list[ValuePath]:
    """Make the value path of every module whose projections a layer's stages change."""
    by_module: dict[nn.Module, list[Part]] = {}
    sides = [side for stage in mechanism.early_features for side in stage.sides]
    for part in dict.fromkeys([*(stage.target for stage in stages), *sides]):
        by_module.setdefault((attention.projections or {})[part].module, []).append(part)
    return [ValuePath(attention, tuple(parts)) for parts in by_module.values()]


def _split_heads(t: Tensor, num_heads: int) -> Tensor:
    """Split [b n w] into heads, [b h n d]."""
    heads: Tensor = t.unflatten(-1, (num_heads, -1))
    return heads.transpose(1, 2)


def find_stages(mechanism: Mechanism, attention: AttentionModule) -> tuple[Value, ...]:
    """Return the values stages that act in a layer; refuse stages that cannot."""
    acting = tuple(stage for stage in mechanism.values if acts_at(stage, attention))
    early = mechanism.early_features
    check_order(mechanism)
    for item in (*acting, *early):
        if attention.projections is None:
            why = describe_unknown(attention.module, attention.name)
            raise InstallError(f"'{item}' acts on a projection, and {why}")
    if attention.projections is None:
        return acting
    for side in dict.fromkeys(side for feature in early for side in feature.sides):
        check_forward(attention.projections[side].module)
    for stage in acting:
        projection = attention.projections[stage.target]
        check_forward(projection.module)
        width = in_width(projection.module)
        if stage.uses_x and width != projection.width:
            grouped = " (key heads are grouped)" if attention.num_key_heads != attention.num_heads else ""
            raise InstallError(
                f"'{stage}' adds the layer's input to '{projection.name}' of '{attention.name}', but the input is "
                f"{width} wide and the projection {projection.width}{grouped}; it needs a model in which they are equal"
                " (a stage of your own that does not use x declares uses_x = False)"
            )
    return acting


def check_order(mechanism: Mechanism) -> None:
    """Refuse a stage that needs what a stage of token ids makes of the token before: a cache does not hold its id."""
    parts: tuple[Part, ...] = ("q", "k", "v")
    for part in parts:
        stages = mechanism.list_projection_stages(part)
        for place, stage in enumerate(stages):
            of_tokens = [other for other in stages[:place] if "tokens" in other.inputs]
            if "before" in stage.inputs and of_tokens:
                hint = f"put '{stage}' before it in the line" if isinstance(stage, Value) else "remove one of them"
                raise InstallError(
                    f"'{stage}' needs what '{of_tokens[0]}' computes for the token before, and a cache does not hold "
                    f"that token's id; {hint}"
                )


def acts_at(stage: Value, attention: AttentionModule) -> bool:
    """Tell whether a stage acts in this layer."""
    layers = stage.active_layers
    if layers == "all":
        return True
    if attention.index is None:
        raise InstallError(
            f"'{stage}' names layers, but those of '{attention.name}' have no single number (two stacks as in T5, "
            "layers in groups, or one layer used several times)"
        )
    return attention.index in _read_layers(layers)


def _read_layers(layers: str) -> set[int]:
    """Read '0-3' or '0,2' as a set of numbers."""
    ranges = [part.partition("-") for part in layers.split(",")]
    return {number for first, _, last in ranges for number in range(int(first), int(last or first) + 1)}


def check_layers(mechanism: Mechanism, attentions: list[AttentionModule]) -> None:
    """Refuse layers that the model does not have."""
    known = {attention.index for attention in attentions if attention.index is not None}
    for stage in mechanism.values:
        layers = stage.active_layers
        if layers != "all" and known and (beyond := _read_layers(layers) - known):
            raise InstallError(
                f"'{stage}' names layer {min(beyond)}, but the model's layers are {min(known)} to {max(known)}"
            )
