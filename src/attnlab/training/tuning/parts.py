"""The parts of a tuned model: which part each of its parameters belongs to.

The body is the model's `base_model`, and a mechanism's learned parameters are its own part of it. The head is what
stands outside the body and is not tied to it. A prompt, a prefix and LoRA are what tuning adds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import nn
from transformers import PreTrainedModel

from attnlab.data.draws import keys_of, name_key
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


@dataclass(frozen=True)
class Counts:
    """Numbers in a model, by part: those that train, and all. What several modules share counts once."""

    trained: Mapping[Part, int]
    total: Mapping[Part, int]

    @property
    def num_trained(self) -> int:
        """How many train."""
        return sum(self.trained.values())

    @property
    def num_total(self) -> int:
        """How many there are."""
        return sum(self.total.values())

    @property
    def sentence(self) -> str:
        """Say it in a line."""
        shown = sorted(((n, part) for part, n in self.trained.items() if n), key=lambda pair: -pair[0])
        split = ", ".join(f"{part} {n:,}" for n, part in shown) or "none"
        return f"trains {self.num_trained:,} of {self.num_total:,} parameters: {split}"


def count_parameters(model: nn.Module) -> Counts:
    """Count a model's parameters by part; every part is there, with 0 where the model has none of it."""
    trained: dict[Part, int] = dict.fromkeys(PARTS, 0)
    total: dict[Part, int] = dict.fromkeys(PARTS, 0)
    for _, parameter, part in parameters_by_part(model):
        total[part] += parameter.numel()
        trained[part] += parameter.numel() * parameter.requires_grad
    return Counts(trained, total)


def generator_of(seed: int, name: str) -> torch.Generator:
    """Return a generator for one tensor; torch's own is left alone."""
    return torch.Generator().manual_seed(int(keys_of(seed, name_key(name))) >> 1)
