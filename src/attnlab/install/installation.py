"""Put a mechanism into a model in place, and take it out again."""

import dataclasses
import warnings
from typing import NamedTuple, TypeVar

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle
from transformers import PreTrainedModel

from attnlab.errors import AttnlabWarning, InstallError, RequestError, ShapeError
from attnlab.mechanisms import LayeredMechanism, Line, Mechanism, Value, parse_line

from .attention_modules import (
    AttentionModule,
    count_heads,
    describe_attention,
    find_attention_modules,
    has_position_bias,
    is_cross_attention,
)
from .body import copy_configs, find_body, has_cross_attention, list_configs
from .bridges import Bridge, choose_name, tell_weights
from .compat import get_attention_name, set_attention_name
from .inspection import RECORD, attention_layers, refuse_other_attention
from .key_heads import NarrowedHeads, describe_narrowed
from .layer import Layer, has_penalty, list_shared_parameters, takes_calls
from .layer_input import AttentionCall
from .line_layers import check_line_layers
from .mixer import DisabledCache, MixerCall, check_body, make_layer, refuses_cache
from .own_parts import find_own_parts, find_replacement, make_own_bias
from .own_positions import RemovedPositions, check_own_positions, choose_scheme
from .pass_context import PASS_CONTEXT, PassContext
from .projections import Part, check_forward
from .replaced_parts import ReplacedParts
from .sharing import FusedTie, Tie, check_sharing, list_tied_parts, tie
from .valuepath import ValuePath, check_layers, find_stages, make_paths

M = TypeVar("M", bound=nn.Module)


class PlannedLayer(NamedTuple):
    """An attention module, its mechanism, and the values stages that act there."""

    attention: AttentionModule
    mechanism: Mechanism
    stages: tuple[Value, ...]


Plan = list[PlannedLayer]
PLURALS: dict[Part, str] = {"q": "queries", "k": "keys", "v": "values"}


class InstallationRecord:
    """The changes that `install` made to a model, besides the layers it added."""

    def __init__(self, model: PreTrainedModel) -> None:
        self.implementations = [(config, get_attention_name(config)) for config in list_configs(model)]
        self.handles: list[RemovableHandle] = []
        self.paths: list[ValuePath | AttentionCall] = []
        self.ties: list[Tie | FusedTie] = []
        self.narrowed: list[NarrowedHeads] = []
        self.positions: list[RemovedPositions] = []
        self.caches: list[DisabledCache] = []
        self.parts: list[ReplacedParts] = []
        self.bridges: list[Bridge] = []


def install(model: M, mechanism: str | Line, *, seed: int = 0) -> M:
    """Put a mechanism, or mechanisms by layer, into a Hugging Face model, in place; return the model.

    An installed mechanism is replaced. If the mechanism is refused, the model is not changed.
    seed: determines the initial learned parameters, together with their names; torch's generator is not used.
    """
    parsed = parse_line(mechanism)
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise RequestError(f"seed must be a whole number, not {seed!r}")
    body = find_body(model)
    if _is_installed_elsewhere(body):
        raise InstallError(f"a mechanism was installed in {_describe_place(body)}; install or uninstall it there")
    put(body, parsed, seed)
    _warn_of_dropped_weights(parsed, body)
    _warn_of_dropped_parts(parsed, body)
    return model


def put(body: PreTrainedModel, line: Line, seed: int) -> None:
    """Put a mechanism into a model, in place of the one that is installed there."""
    record: InstallationRecord | None = vars(body).get(RECORD)
    originals = {id(heads.attention.module): heads.attention for heads in (record.narrowed if record else [])}
    # What is installed is taken out after these checks, so they see the projections as they will be then.
    attentions = [originals.get(id(attention.module), attention) for attention in find_attention_modules(body)]
    plan = _make_plan(line, attentions)
    _check_positions(line, body)
    check_own_positions(line, body)
    check_body(line, body)
    if record is not None:
        uninstall(body)
    else:
        copy_configs(body)
    record = InstallationRecord(body)
    called_as = choose_name(line, body)
    _apply_plan(plan, line, seed, body, record, called_as)
    record.positions.append(RemovedPositions(choose_scheme(line), body))
    if refuses_cache(line):
        record.caches.append(DisabledCache(body))
    for config, _ in record.implementations:
        set_attention_name(config, called_as)
    vars(body)[RECORD] = record


def uninstall(model: M) -> M:
    """Take the mechanism out of a model, in place; the model keeps its current weights. Return the model."""
    body = find_body(model)
    if RECORD not in vars(body):
        where = f"; one is in {_describe_place(body)}" if _is_installed_elsewhere(body) else ""
        raise InstallError(f"no mechanism was installed in this {type(body).__name__}{where}")
    record: InstallationRecord = vars(body)[RECORD]
    for replaced in (*record.paths, *record.bridges):
        check_forward(replaced.module)
    for heads in record.narrowed:
        heads.check_adapters()
    del vars(body)[RECORD]
    for handle in record.handles:
        handle.remove()
    # In this order, since a path may stand in for the forward of a tie or a bridge.
    changes = (*record.paths, *record.bridges, *record.ties, *record.narrowed, *record.positions, *record.parts)
    for change in (*changes, *record.caches):
        change.undo()
    for _, module, _ in list(attention_layers(body)):
        del module.attnlab, vars(module)[PASS_CONTEXT]
    for config, implementation in record.implementations:
        set_attention_name(config, implementation)
    return model


def _list_models(body: PreTrainedModel) -> list[PreTrainedModel]:
    return [part for part in body.modules() if isinstance(part, PreTrainedModel)]


def _is_installed_elsewhere(body: PreTrainedModel) -> bool:
    """Tell whether the mechanism was installed in an enclosing model or a submodel."""
    return RECORD not in vars(body) and next(attention_layers(body), None) is not None


def _describe_place(body: PreTrainedModel) -> str:
    """Say in which model the mechanism of this one was installed."""
    inside = [name for name, part in body.named_modules() if RECORD in vars(part)]
    return f"its part '{inside[0]}'" if inside else f"the model around this {type(body).__name__}"


def _make_plan(line: Line, attentions: list[AttentionModule]) -> Plan:
    """Check everything that can be refused, and return which values stages act in which layer."""
    if isinstance(line, LayeredMechanism):
        check_line_layers(line, attentions)
    for mechanism in line.distinct:
        check_layers(mechanism, attentions)
    widths: dict[str, int | None] = {}
    plan: Plan = []
    for attention in attentions:
        mechanism = _choose_mechanism(line, attention)
        if mechanism.kv_heads is not None:
            attention = describe_narrowed(mechanism.kv_heads, attention)
        check_sharing(mechanism.share, attention)
        stages = find_stages(mechanism, attention)
        make_layer(mechanism, stages, attention, 0)  # refuses unknown sizes, and a mixer that cannot be built
        _check_calls(mechanism, attention)
        width = attention.projections["v"].width if attention.projections else None
        if widths.setdefault(attention.stack, width) != width and any(stage.uses_first for stage in stages):
            raise InstallError(
                f"the values of '{attention.name}' are {width} wide and those of the first layer "
                f"{widths[attention.stack]}; '{mechanism}' mixes them"
            )
        plan.append(PlannedLayer(attention, mechanism, stages))
    if isinstance(line, LayeredMechanism):
        _check_first_values(line, plan)
    return plan


def _choose_mechanism(line: Line, attention: AttentionModule) -> Mechanism:
    """Return the mechanism of a layer; in T5's cross-attention without the line's positions, as the model has none."""
    mechanism = line.at_layer(attention.index or 0)
    if has_position_bias(attention.module) and is_cross_attention(attention.module):
        return dataclasses.replace(mechanism, positions=Mechanism().positions)
    return mechanism


def _check_calls(mechanism: Mechanism, attention: AttentionModule) -> None:
    """Refuse stages that need the layer's input, or pairs of heads, where a module does not have them."""
    if takes_calls(mechanism):
        check_forward(attention.module)
    early, num_heads = mechanism.early_features, count_heads(attention.module)
    if early and num_heads is not None and attention.num_heads not in (None, num_heads):
        raise InstallError(
            f"'{early[0]}' acts on the queries of '{attention.name}' ({type(attention.module).__name__}), whose "
            f"projection is {attention.num_heads} heads wide instead of {num_heads}: it computes more than queries"
        )
    if mechanism.heads is not None and attention.num_heads is not None:
        try:
            mechanism.heads.spread_values(torch.empty(0, attention.num_heads, 0, 1))
        except ShapeError as error:
            raise InstallError(f"'{attention.name}': {error}") from None


def _check_first_values(line: LayeredMechanism, plan: Plan) -> None:
    """Refuse a stage that mixes in the first layer's values if the first layer of its stack has no such stage."""
    has_first: dict[str, bool] = {}
    num_earlier: dict[str, int] = {}
    for attention, mechanism, stages in plan:
        mixing = [stage for stage in stages if stage.uses_first]
        if mixing and not has_first.setdefault(attention.stack, True):
            raise InstallError(
                f"'{mixing[0]}' mixes in the values of the first layer, where '{line}' does not have it; give it to "
                "the first layer too (a stage of your own that does not use `first` declares uses_first = False)"
            )
        has_first.setdefault(attention.stack, bool(mixing))
        num_first = num_earlier.setdefault(attention.stack, mechanism.num_earlier)
        shifting = [stage for stage in stages if "before" in stage.inputs and stage.target == "v"]
        if mixing and shifting and num_first < mechanism.num_earlier:
            raise InstallError(
                f"'{shifting[0]}' needs the value of the token before, and '{mixing[0]}' mixes in that of the first "
                f"layer, where '{line}' does not have '{shifting[0]}'; give it to the first layer too (a stage of your "
                "own that does not use `first` declares uses_first = False)"
            )


def _check_positions(line: Line, body: PreTrainedModel) -> None:
    for mechanism in line.distinct:
        needs_x_of_keys = any(stage.slot != "output" for stage in mechanism.find_stages_needing("x"))
        if (needs_x_of_keys or mechanism.num_earlier) and has_cross_attention(body):
            raise InstallError(
                f"'{mechanism}' needs the layer's input at the keys, but in the cross-attention of this "
                f"{type(body).__name__} keys come from another sequence; use a model without cross-attention"
            )
    for stage in line.find_stages_needing("tokens"):
        if has_cross_attention(body):
            raise InstallError(
                f"'{stage}' needs the token ids of the values, but in the cross-attention of this "
                f"{type(body).__name__} they come from another sequence; use a model without cross-attention"
            )
    knows_cross_attention = any(has_position_bias(module) for module in body.modules())
    for stage in line.find_stages_needing("positions"):
        if stage.slot == "positions" and knows_cross_attention:
            continue
        if stage.needs.get("positions", True) and has_cross_attention(body):
            raise InstallError(
                f"'{stage}' needs positions, but in the cross-attention of this {type(body).__name__} queries and keys "
                "are of two sequences, without positions in common; use a model without cross-attention"
            )


def _warn_of_dropped_weights(line: Line, body: PreTrainedModel) -> None:
    for share in dict.fromkeys(mechanism.share for mechanism in line.distinct):
        parts = list_tied_parts(share)
        if parts and body.name_or_path:
            first, *others = (PLURALS[part] for part in parts)
            message = (
                f"'{share}': the {' and '.join(others)} use the {first}' weights, and their own pretrained ones are "
                "dropped"
            )
            warnings.warn(message, AttnlabWarning, stacklevel=3)
    groups = {each.stage: each.group for each in vars(body)[RECORD].narrowed if each.group > 1}
    for stage, group in groups.items() if body.name_or_path else ():
        message = (
            f"'{stage}': each head of keys and values is the mean of {group} pretrained ones, which uninstall does not "
            "bring back; train the model further"
        )
        warnings.warn(message, AttnlabWarning, stacklevel=3)


def _warn_of_dropped_parts(line: Line, body: PreTrainedModel) -> None:
    dropped = dict.fromkeys(words for parts in vars(body)[RECORD].parts for words in parts.dropped)
    if dropped and body.name_or_path:
        message = (
            f"'{line}' computes attention without what this {type(body).__name__} was trained with: "
            f"{', '.join(dropped)}; attnlab.describe(model) of the plain model returns the line that has it"
        )
        warnings.warn(message, AttnlabWarning, stacklevel=3)


def _apply_plan(
    plan: Plan, line: Line, seed: int, body: PreTrainedModel, record: InstallationRecord, called_as: str
) -> None:
    """Change the model as planned; `called_as` is the name under which transformers calls the mechanism."""
    needs_first = any(stage.uses_first for planned in plan for stage in planned.stages)
    needs_tokens = any("tokens" in stage.inputs for planned in plan for stage in planned.stages)
    context = PassContext(needs_first, body.config.vocab_size if needs_tokens else None)
    owners: dict[str, Layer] = {}
    biases: dict[int, Layer] = {}
    for attention, mechanism, stages in plan:
        narrowed = None
        if mechanism.kv_heads is not None and attention.projections is not None:
            before = describe_attention(attention.name, attention.module, attention.config)
            record.narrowed.append(narrowed := NarrowedHeads(mechanism.kv_heads, before))
            attention = describe_attention(attention.name, attention.module, attention.config)
        layer = make_layer(mechanism, stages, attention, seed, len(plan))
        layer.line, layer.attention_function = line, called_as
        layer.num_key_heads = attention.num_key_heads if narrowed and narrowed.group > 1 else None
        layer.train(attention.module.training)
        weight = next((p for p in attention.module.parameters() if p.is_floating_point()), None)
        attention.module.attnlab = layer if weight is None else layer.to(device=weight.device, dtype=weight.dtype)
        vars(attention.module)[PASS_CONTEXT] = context
        if attention.bridge is not None:
            attention.bridge.take_place(attention.module)
            record.bridges.append(attention.bridge)
        if tied := tie(mechanism.share, attention):
            record.ties.append(tied)
        record.paths += make_paths(attention, stages, mechanism)
        if mechanism.mixer is not None:
            record.paths.append(MixerCall(attention.module))
        elif takes_calls(mechanism):
            record.paths.append(AttentionCall(attention.module))
        _take_over(attention, [planned.attention for planned in plan], biases, record)
        # Parameters that a stage learns once for the whole model are those of the first layer.
        for name in (name for stage in stages for name in list_shared_parameters(stage)):
            if owners.setdefault(name, layer) is not layer:
                layer.share_parameter(name, owners[name])
    for part in _list_models(body):
        record.handles.append(part.register_forward_pre_hook(refuse_other_attention))
        if record.bridges:
            record.handles.append(part.register_forward_pre_hook(tell_weights, with_kwargs=True))
        if needs_first or needs_tokens or any(has_penalty(mechanism) for mechanism in line.distinct):
            record.handles.append(part.register_forward_pre_hook(context.begin))
            if needs_tokens:
                record.handles.append(part.register_forward_pre_hook(context.take_tokens, with_kwargs=True))
            record.handles.append(part.register_forward_hook(context.end, always_call=True))


def _take_over(
    attention: AttentionModule, attentions: list[AttentionModule], biases: dict[int, Layer], record: InstallationRecord
) -> None:
    """Start a layer's parameters at what the model has of its own, and take that out of the model.

    biases: the layers with a bias of their own, by the weight of the model that it starts at: layers share one if the
    layers of the model do.
    """
    layer: Layer = attention.module.attnlab  # type: ignore[assignment]
    parts = find_own_parts(attention, attentions)
    layer.know_parts(parts, make_own_bias(parts, attention.module), has_position_bias(attention.module))
    bias = parts.get("relative bias")
    _, parameter = find_replacement("relative bias", layer.mechanism)
    if bias is not None and parameter is not None:
        owner = biases.setdefault(id(bias.weight), layer)
        if owner is not layer and getattr(owner, parameter).shape == getattr(layer, parameter).shape:
            layer.share_parameter(parameter, owner)
    record.parts.append(ReplacedParts(attention, parts, layer))
