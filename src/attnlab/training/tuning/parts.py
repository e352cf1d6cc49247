"""The parts of a tuned model: which part each of its parameters belongs to.

The body is the model's `base_model`, and a mechanism's learned parameters are its own part of it. The head is what
stands outside the body and is not tied to it. A prompt, a prefix and LoRA are what tuning adds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, get_args

from torch import nn
from transformers import PreTrainedModel

from attnlab.errors import TrainingError
from attnlab.install.layer import PREFIX

Part = Literal["body", "mechanism", "head", "prompt", "prefix", "lora"]
PARTS: tuple[Part, ...] = get_args(Part)

PROMPT = "attnlab_prompt"
"""The name of the submodule of a model that holds its prompt."""
MECHANISM = "attnlab"
"""The name of the submodule of an attention module that holds its mechanism."""


def parameters_by_part(model: nn.Module) -> Iterator[tuple[str, nn.Parameter, Part]]:
    """Yield every parameter with its part, once each and under its first name, however many modules share it."""
    body = {id(parameter) for parameter in inner_model(model).base_model.parameters()}
    for name, parameter in model.named_parameters():
        yield name, parameter, part_of(name, id(parameter) in body)


def part_of(name: str, is_in_body: bool) -> Part:
    """Tell a parameter's part by its name and by whether the body holds it."""
    *path, last = name.split(".")
    if PROMPT in path:
        return "prompt"
    if MECHANISM in path:
        return "prefix" if last in PREFIX else "mechanism"
    if any(step.startswith("lora_") for step in path):
        return "lora"
    return "body" if is_in_body else "head"


def inner_model(model: nn.Module) -> PreTrainedModel:
    """Return the Hugging Face model that a model is, or that a wrapper (DDP, torch.compile) is around."""
    for part in model.modules():
        if isinstance(part, PreTrainedModel):
            return part
    raise TrainingError(f"{type(model).__name__} holds no Hugging Face model (transformers.PreTrainedModel)")
