"""`describe`: the line of what a model's attention already does, read from its modules.

What no stage expresses is left to the model, where `install` leaves it too, and named in an AttnlabWarning; so
`install(model, describe(model))` computes what the model computes.
"""

import dataclasses
import math
import warnings
from typing import Any

from torch import nn
from transformers import PreTrainedModel

from attnlab.errors import AttnlabWarning, InstallError
from attnlab.mechanisms import LayeredMechanism, Line, Mask, Mechanism, parse_line, parse_mechanism

from .attention_modules import (
    AttentionModule,
    find_attention_modules,
    has_position_bias,
    is_cross_attention,
    list_forward_names,
)
from .body import find_body, has_cross_attention
from .inspection import attention_layers, check_in_use
from .own_parts import NORMS, OwnPart, find_own_parts, find_replacement
from .rotation import Rotation, read_rotation

BIDIRECTIONAL, CAUSAL = "create_bidirectional_sliding_window_mask", "create_sliding_window_causal_mask"
"""The functions by which models of transformers make masks with a window."""

Remarks = dict[str, None]
"""What no stage expresses of a model, in words, in the order in which it was found."""


def describe(model: nn.Module) -> Line:
    """Return the line of what a model computes in its attention, with or without a mechanism.

    What no stage expresses is left out of the line, and an AttnlabWarning names it: `install` leaves it in the model.
    """
    body = find_body(model)
    check_in_use(body)
    remarks: Remarks = {}
    line = _describe_layers(body, remarks)
    if remarks:
        message = (
            f"'{line}' does not include everything that this {type(body).__name__} does; no stage expresses: "
            f"{'; '.join(remarks)}"
        )
        warnings.warn(message, AttnlabWarning, stacklevel=2)
    return line


def _describe_layers(body: PreTrainedModel, remarks: Remarks) -> Line:
    attentions = find_attention_modules(body)
    installed = {id(module): layer.mechanism for _, module, layer in attention_layers(body)}
    rotations = {
        id(attention.module): None if attention.bridge else read_rotation(attention, body) for attention in attentions
    }
    has_bias = any(has_position_bias(attention.module) for attention in attentions)
    # `install` refuses stages that need positions there.
    is_without_positions = has_cross_attention(body) and not has_bias
    own_rotations = [
        rotation
        for module, rotation in rotations.items()
        if rotation is not None and installed.get(module, Mechanism()).positions.is_of_model
    ]
    unwritten = [rotation.remark for rotation in own_rotations if rotation.remark]
    if own_rotations and is_without_positions:
        unwritten = ["its rotation, in a model with cross-attention"]
    remarks.update(dict.fromkeys(f"{remark} (positions(model) keeps it)" for remark in unwritten))
    mechanisms: list[tuple[AttentionModule, Mechanism]] = []
    for attention in attentions:
        if attention.bridge is not None:
            mechanisms.append((attention, _describe_bridge(attention, installed.get(id(attention.module)), remarks)))
            continue
        if has_bias and is_cross_attention(attention.module):
            continue  # T5's cross-attention is its self-attention without positions, as `install` makes it
        mechanism, rotation = installed.get(id(attention.module)), rotations[id(attention.module)]
        parts = _find_kept_parts(attention, attentions, mechanism)
        stages = [_describe_score(attention, rotation, remarks), *_describe_parts(parts, remarks)]
        _find_other_norms(attention.module, remarks)
        # A model keeps its own positions in all layers or in none.
        stages += [rotation.scheme] if rotation is not None and rotation.scheme and not unwritten else []
        masks = _describe_mask(attention, body, remarks)
        if masks and is_without_positions:
            remarks[f"'{masks[0]}', in a model with cross-attention (the model keeps it)"] = None
        stages += [] if is_without_positions else masks
        if attention.num_key_heads != attention.num_heads:
            stages.append(f"heads(kv={attention.num_key_heads})")
        own = parse_mechanism(" | ".join(stages))
        mechanisms.append((attention, own if mechanism is None else _combine(own, mechanism)))
    return _merge_layers(mechanisms)


def _describe_bridge(attention: AttentionModule, mechanism: Mechanism | None, remarks: Remarks) -> Mechanism:
    """Return what an attention module that computes attention by itself does, with its mechanism if it has one."""
    assert attention.bridge is not None
    keeps_positions = mechanism is None or mechanism.positions.is_of_model
    own = parse_mechanism(" | ".join(attention.bridge.describe(attention.config, remarks, keeps_positions)))
    return own if mechanism is None else _combine(own, mechanism)


def _find_kept_parts(
    attention: AttentionModule, attentions: list[AttentionModule], mechanism: Mechanism | None
) -> dict[str, OwnPart]:
    """Return what an attention module has of its own, beside its mechanism if it has one."""
    parts = find_own_parts(attention, attentions)
    if mechanism is None:
        return parts
    return {
        name: part
        for name, part in parts.items()
        if part.stays_with(mechanism) and not find_replacement(name, mechanism)[0]
    }


def _describe_parts(parts: dict[str, OwnPart], remarks: Remarks) -> list[str]:
    """Return the weights of a layer, and the stages for what it has of its own."""
    for part in parts.values():
        if not part.stage:
            remarks[f"{part.words} ({type(part.module).__name__}; the model keeps it unless a line has a norm)"] = None
    weights = ["softmax"] if "sinks" not in parts else []
    return [*weights, *dict.fromkeys(part.stage for part in parts.values() if part.stage)]


def _find_other_norms(module: nn.Module, remarks: Remarks) -> None:
    """Add the norms of an attention module that are not recognised by their names."""
    for name, child in module.named_children():
        is_norm = "norm" in name.lower() or name.endswith("_ln")
        if is_norm and name not in NORMS.values() and not isinstance(child, nn.Identity):
            remarks[f"its module '{name}' ({type(child).__name__}; the model keeps it)"] = None


def _describe_score(attention: AttentionModule, rotation: Rotation | None, remarks: Remarks) -> str:
    scale, dim = getattr(attention.module, "scaling", None), attention.head_dim
    scale = rotation.scale if scale is None and rotation is not None else scale
    if not isinstance(scale, float):
        remarks["its scale, which is no attribute `scaling` of its attention (dot uses it in the model)"] = None
        return "dot"
    is_usual = dim is not None and math.isclose(scale, dim**-0.5, rel_tol=1e-12)
    return "dot" if is_usual else f"dot(scale={scale!r})"


def _describe_mask(attention: AttentionModule, body: PreTrainedModel, remarks: Remarks) -> list[str]:
    """Return the window or the chunks of a layer, which the model puts into its masks."""
    config: Any = attention.config
    types, index = getattr(config, "layer_types", None), getattr(attention.module, "layer_idx", None)
    kind = types[index] if types and isinstance(index, int) else None
    makers = _find_mask_makers(attention.module, body)
    width = getattr(config, "sliding_window", None)
    if kind == "chunked_attention":
        return [f"chunk({config.attention_chunk_size})"]
    if kind == "full_attention" or (kind is None and width is None):
        return []
    if kind in (None, "sliding_attention") and isinstance(width, int):
        if BIDIRECTIONAL in makers:
            return [f"window({width + 1})"]  # transformers' windows in both directions include their last key
        if CAUSAL in makers:
            return [f"window({width})"]
        if kind is None:
            return []  # a setting of the config that no mask uses
    remarks[f"its mask of type '{kind}' (the model keeps it)"] = None
    return []


def _find_mask_makers(module: nn.Module, body: PreTrainedModel) -> set[str]:
    """Return the functions for windows that the innermost model around an attention module calls."""
    models = [part for part in body.modules() if isinstance(part, PreTrainedModel)]
    around = [part for part in models if any(inner is module for inner in part.modules())]
    makers = [list_forward_names(part) & {BIDIRECTIONAL, CAUSAL} for part in around]
    return next((names for names in reversed(makers) if names), set())


def _combine(own: Mechanism, mechanism: Mechanism) -> Mechanism:
    """Return an installed mechanism together with what it leaves in the model."""
    return dataclasses.replace(
        mechanism,
        score=own.score if mechanism.score.takes_scale else mechanism.score,
        positions=own.positions if mechanism.positions.is_of_model else mechanism.positions,
        features=(*own.features, *mechanism.features),
        mask=_intersect(own.mask, mechanism.mask),
        kv_heads=own.kv_heads,
    )


def _intersect(own: tuple[Mask, ...], written: tuple[Mask, ...]) -> tuple[Mask, ...]:
    """Return the masks of a model and of its mechanism; of two windows the narrower one."""
    masks = {mask.name: mask for mask in own}
    for mask in written:
        other = masks.get(mask.name)
        if other is not None and other != mask and not mask.is_by_distance:
            raise InstallError(
                f"'{other}' of the model and '{mask}' of its mechanism act together, which no line expresses"
            )
        if other is None or (mask.reach or 0) < (other.reach or 0):
            masks[mask.name] = mask
    return tuple(masks.values())


def _merge_layers(mechanisms: list[tuple[AttentionModule, Mechanism]]) -> Line:
    """Return one mechanism if all layers have the same, else a line by layer."""
    if len({mechanism for _, mechanism in mechanisms}) == 1:
        return mechanisms[0][1]
    layers: dict[int, Mechanism] = {}
    for attention, mechanism in mechanisms:
        if attention.index is None:
            raise InstallError(
                f"the layers of this model differ ('{mechanisms[0][1]}', '{mechanism}'), and '{attention.name}' has no "
                "single number by which a line could name it"
            )
        if layers.setdefault(attention.index, mechanism) != mechanism:
            raise InstallError(
                f"two attention modules of layer {attention.index} differ ('{layers[attention.index]}', '{mechanism}' "
                f"in '{attention.name}'), and a line names a layer once; describe one part of the model"
            )
    every = _find_period(layers)
    chosen = layers if every is None else {index: layers[index] for index in range(every)}
    suffix = "" if every is None else f" every {every}"
    line = parse_line("; ".join(f"{mechanism} @ {index}{suffix}" for index, mechanism in chosen.items()))
    assert isinstance(line, LayeredMechanism)
    return line


def _find_period(layers: dict[int, Mechanism]) -> int | None:
    """Return after how many layers the mechanisms repeat, at least once in full; None if they do not."""
    if sorted(layers) != list(range(len(layers))):
        return None
    for every in range(1, len(layers) // 2 + 1):
        if all(layers[index] == layers[index % every] for index in layers):
            return every
    return None
