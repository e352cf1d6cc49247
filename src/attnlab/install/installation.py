"""Put a mechanism into a model in place, and take it out again."""

from __future__ import annotations

import functools
import warnings
from typing import TypeVar

from torch import nn
from torch.utils.hooks import RemovableHandle
from transformers import PreTrainedModel

from attnlab.errors import AttnlabWarning, InstallError, RequestError
from attnlab.mechanisms import Mechanism, Value

from .attention_modules import AttentionModule, find_attention_modules
from .body import body_of, configs_of, give_own_configs, has_cross_attention
from .compat import get_attention_name, set_attention_name
from .inspection import RECORD, attention_layers
from .interface import name_for, register
from .layer import Layer, has_penalty, list_shared_parameters
from .pass_context import PASS_CONTEXT, PassContext
from .projections import check_forward
from .saving import save_instead
from .sharing import FusedTie, Tie, check_sharing, tie, tied_parts
from .valuepath import ValuePath, check_layers, find_stages, make_paths

M = TypeVar("M", bound=nn.Module)

Plan = list[tuple[AttentionModule, tuple[Value, ...]]]
"""The attention modules, and the values stages that act in each."""


class InstallationRecord:
    """What `install` changed in a model, besides the layers it put there."""

    def __init__(self, model: PreTrainedModel) -> None:
        self.implementations = [(config, get_attention_name(config)) for config in configs_of(model)]
        self.handles: list[RemovableHandle] = []
        self.paths: list[ValuePath] = []
        self.ties: list[Tie | FusedTie] = []


def install(model: M, mechanism: str | Mechanism, *, seed: int = 0) -> M:
    """Put a mechanism into every attention of a Hugging Face model, in place; return the model.

    A mechanism that is there already is replaced. Where something is refused, the model stays as it was.
    seed: what the learned parameters start from, together with their names; torch's own generator is left alone.
    """
    parsed = Mechanism.parse(mechanism)
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise RequestError(f"seed must be a whole number, not {seed!r}")
    body = body_of(model)
    plan = _make_plan(parsed, find_attention_modules(body))
    _check_positions(parsed, body)
    if _is_installed_elsewhere(body):
        raise InstallError(f"a mechanism was installed in {_describe_place(body)}; install or uninstall it there")
    _warn_of_dropped_weights(parsed, body)
    if RECORD in vars(body):
        uninstall(body)
    else:
        give_own_configs(body)
    register()
    record = InstallationRecord(body)
    _apply_plan(plan, parsed, seed, body, record)
    for config, _ in record.implementations:
        set_attention_name(config, name_for(parsed))
    for part in body.modules():
        if isinstance(part, PreTrainedModel):
            # Saved the usual way, the weights would be read back into a model without the mechanism.
            vars(part)["save_pretrained"] = functools.partial(save_instead, part)
            vars(part)["set_attn_implementation"] = functools.partial(_refuse_switch, part)
    vars(body)[RECORD] = record
    return model


def uninstall(model: M) -> M:
    """Take the mechanism out of a model, in place, and return the model: as it was, with the weights it has now."""
    body = body_of(model)
    if RECORD not in vars(body):
        where = f"; one is in {_describe_place(body)}" if _is_installed_elsewhere(body) else ""
        raise InstallError(f"no mechanism was installed in this {type(body).__name__}{where}")
    record: InstallationRecord = vars(body)[RECORD]
    for path in record.paths:
        check_forward(path.module)
    del vars(body)[RECORD]
    for handle in record.handles:
        handle.remove()
    for change in (*record.paths, *record.ties):  # a path was laid over a tie
        change.undo()
    for _, module, _ in list(attention_layers(body)):
        del module.attnlab, vars(module)[PASS_CONTEXT]
    for config, implementation in record.implementations:
        set_attention_name(config, implementation)
    for part in body.modules():
        if isinstance(part, PreTrainedModel):
            vars(part).pop("save_pretrained", None)
            vars(part).pop("set_attn_implementation", None)
    return model


def _is_installed_elsewhere(body: PreTrainedModel) -> bool:
    """Tell whether a model's mechanism came with the model around it, or with one inside."""
    return RECORD not in vars(body) and next(attention_layers(body), None) is not None


def _describe_place(body: PreTrainedModel) -> str:
    """Say where a mechanism was installed that is in a model and did not come with it."""
    inside = [name for name, part in body.named_modules() if RECORD in vars(part)]
    return f"its part '{inside[0]}'" if inside else f"the model around this {type(body).__name__}"


def _refuse_switch(model: PreTrainedModel, attn_implementation: object, *given: object, **more: object) -> None:
    """Stand in for a model's set_attn_implementation: another one would leave the mechanism there and not call it."""
    raise InstallError(
        f"set_attn_implementation({attn_implementation!r}) would switch off the mechanism installed in this "
        f"{type(model).__name__}; call attnlab.uninstall(model) first"
    )


def _make_plan(mechanism: Mechanism, attentions: list[AttentionModule]) -> Plan:
    """Check all that can be refused, and return which values stages act in which layer."""
    check_layers(mechanism, attentions)
    widths: dict[str, int | None] = {}
    plan: Plan = []
    for attention in attentions:
        check_sharing(mechanism.share, attention)
        stages = find_stages(mechanism, attention)
        Layer(mechanism, stages, attention, 0)  # refuses sizes that cannot be told
        width = attention.projections["v"].width if attention.projections else None
        if widths.setdefault(attention.stack, width) != width and any(stage.uses_first for stage in stages):
            raise InstallError(
                f"the values of '{attention.name}' are {width} wide and those of the first layer "
                f"{widths[attention.stack]}; '{mechanism}' mixes them"
            )
        plan.append((attention, stages))
    return plan


def _check_positions(mechanism: Mechanism, body: PreTrainedModel) -> None:
    """Refuse a stage that needs positions where queries and keys are of two sequences."""
    for stage in mechanism.stages_asking("positions"):
        if stage.needs["positions"] and has_cross_attention(body):
            raise InstallError(
                f"'{stage}' needs positions, and the queries and keys of the cross-attention of this "
                f"{type(body).__name__} are of two sequences, with no positions in common; a model of one stack is "
                "needed"
            )


def _warn_of_dropped_weights(mechanism: Mechanism, body: PreTrainedModel) -> None:
    """Say that sharing drops weights somebody has trained."""
    parts = tied_parts(mechanism.share)
    if parts and body.name_or_path:
        kinds = "keys take" if len(parts) == 2 else "keys and values take"
        warnings.warn(
            f"'{mechanism.share}': the {kinds} the queries' weights, and their own pretrained ones are dropped",
            AttnlabWarning,
            stacklevel=3,
        )


def _apply_plan(plan: Plan, mechanism: Mechanism, seed: int, body: PreTrainedModel, record: InstallationRecord) -> None:
    """Change the modules, and write down how to change them back."""
    looks_back = any(stage.uses_first for _, stages in plan for stage in stages)
    context = PassContext(looks_back)
    layers = []
    for attention, stages in plan:
        layer = Layer(mechanism, stages, attention, seed)
        layer.train(attention.module.training)
        weight = next((p for p in attention.module.parameters() if p.is_floating_point()), None)
        attention.module.attnlab = layer if weight is None else layer.to(device=weight.device, dtype=weight.dtype)
        vars(attention.module)[PASS_CONTEXT] = context
        layers.append(layer)
        if tied := tie(mechanism.share, attention):
            record.ties.append(tied)
        record.paths += make_paths(attention, stages)
    _share_parameters(layers)
    if looks_back or has_penalty(mechanism):
        for part in body.modules():
            if isinstance(part, PreTrainedModel):
                record.handles.append(part.register_forward_pre_hook(context.begin))
                record.handles.append(part.register_forward_hook(context.end, always_call=True))


def _share_parameters(layers: list[Layer]) -> None:
    """Let every layer use the first one's parameters where a stage learns them for the whole model."""
    lenders: dict[str, Layer] = {}
    for layer in layers:
        for stage in layer.values:
            for name in list_shared_parameters(stage):
                if lenders.setdefault(name, layer) is not layer:
                    layer.borrow(name, lenders[name])
