"""The attention weights of a model in one forward pass."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from attnlab.errors import InstallError, RequestError
from attnlab.install import attention_layers, mechanism_of
from attnlab.install.body import find_body, has_cross_attention
from attnlab.install.bridges import find_bridge
from attnlab.install.compat import get_attention_name, original_module
from attnlab.install.inspection import omit_missing_attentions

EAGER = "eager"
"""transformers' attention that returns its weights."""


class RecordedWeights(NamedTuple):
    """The weights [layers heads queries keys] in float32, how they were computed, and the numbers of these layers."""

    weights: Tensor
    source: str
    layers: tuple[int, ...]


def find_model(model: object) -> PreTrainedModel:
    """Return the Hugging Face model in a model; refuse one whose attention is not within one sequence."""
    if isinstance(model, nn.Module):
        model = original_module(model)
    try:
        body = find_body(model)
    except InstallError as error:
        raise RequestError(str(error)) from error
    if has_cross_attention(body):
        raise RequestError(
            f"{type(body).__name__} has an encoder and a decoder, and this picture has one text; give "
            "model.get_encoder()"
        )
    return body


def is_causal(body: PreTrainedModel) -> bool | None:
    """Tell whether a model reads from left to right, as its attention modules say; None if they do not."""
    flags = {module.is_causal for module in body.modules() if isinstance(getattr(module, "is_causal", None), bool)}
    if flags:
        return any(flags)
    return True if any(find_bridge(module) is not None for module in body.modules()) else None


def record_weights(model: nn.Module, inputs: Mapping[str, Tensor]) -> RecordedWeights:
    """Record the weights of the layers that have any; a layer with a mixer has none.

    The model is in eval mode during the pass, and afterwards as before.
    """
    body = find_model(model)
    _check_inputs(body, inputs["input_ids"])
    mechanism = mechanism_of(body)
    has_weights = [not layer.replaces_weights for _, _, layer in attention_layers(body)]
    if has_weights and not any(has_weights):
        raise RequestError(f"'{mechanism}' has no attention weights, so that there is nothing to show")
    before = get_attention_name(body.config)
    is_switched = mechanism is None and before != EAGER
    device = next(body.parameters()).device
    with _use_eval_mode(model), torch.no_grad(), omit_missing_attentions(body):
        if is_switched:
            body.set_attn_implementation(EAGER)
        try:
            output = original_module(model)(
                **{name: tensor.to(device) for name, tensor in inputs.items()}, output_attentions=True, return_dict=True
            )
        except (IndexError, RuntimeError) as error:
            if "out of" not in str(error):  # range, or bounds
                raise
            raise RequestError(
                f"{type(body).__name__} cannot read these {inputs['input_ids'].shape[1]} tokens ({error}): they are "
                "more than it has positions for, or the tokenizer is of another model"
            ) from error
        finally:
            if is_switched and before is not None:
                body.set_attn_implementation(before)
    weights = [layer for layer in getattr(output, "attentions", None) or () if layer is not None]
    if not weights or len({layer.shape for layer in weights}) > 1:
        what = "weights of different shapes" if weights else "no attention weights"
        raise RequestError(f"{type(body).__name__} returns {what} for output_attentions=True; it cannot be shown")
    if mechanism is not None:
        source = f"weights of the installed mechanism: {mechanism}"
    else:
        instead = f", in place of '{before}' for this pass" if is_switched else ""
        source = f"no mechanism is installed; weights of transformers' own attention ('{EAGER}'{instead})"
    numbers = tuple(range(len(weights)))
    if not all(has_weights):
        numbers = tuple(number for number, has_any in enumerate(has_weights) if has_any)
        missing = ", ".join(str(number) for number, has_any in enumerate(has_weights) if not has_any)
        source = f"{source}; without weights, and not shown: layer {missing}"
    return RecordedWeights(torch.stack([layer[0] for layer in weights]).float().cpu(), source, numbers)


def _check_inputs(body: PreTrainedModel, ids: Tensor) -> None:
    config = body.config.get_text_config()
    num_known = getattr(config, "vocab_size", None)
    if isinstance(num_known, int) and int(ids.max()) >= num_known:
        raise RequestError(
            f"the tokenizer gives token {int(ids.max())}, and {type(body).__name__} knows {num_known} tokens: the "
            "tokenizer is of another model"
        )
    limit = getattr(config, "max_position_embeddings", None)
    if isinstance(limit, int) and 0 < limit < ids.shape[1]:
        raise RequestError(f"the text has {ids.shape[1]} tokens, and {type(body).__name__} reads {limit}; shorten it")


@contextmanager
def _use_eval_mode(model: nn.Module) -> Iterator[None]:
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        yield
    finally:
        for module, mode in modes.items():
            module.training = mode
