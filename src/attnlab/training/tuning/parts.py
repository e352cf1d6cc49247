"""The parts of a tuned model: the part of each parameter, and how many parameters train in each.

The body is the model's `base_model`; the learned parameters of a mechanism are a part of their own. The head is
outside the body and not tied to it. A prompt, a prefix and LoRA are added by tuning.
"""

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
"""The submodule of a model that holds its prompt."""
MECHANISM = "attnlab"
"""The submodule of an attention module that holds its mechanism."""


def parameters_by_part(model: nn.Module) -> Iterator[tuple[str, nn.Parameter, Part]]:
    """Yield every parameter once, under its first name, with its part."""
    body = {id(parameter) for parameter in find_inner_model(model).base_model.parameters()}
    for name, parameter in model.named_parameters():
        yield name, parameter, _find_part(name, id(parameter) in body)


def _find_part(name: str, is_in_body: bool) -> Part:
    *path, last = name.split(".")
    if PROMPT in path:
        return "prompt"
    if MECHANISM in path:
        return "prefix" if last in PREFIX else "mechanism"
    if any(step.startswith("lora_") for step in path):
        return "lora"
    return "body" if is_in_body else "head"


def find_inner_model(model: nn.Module) -> PreTrainedModel:
    """Return the Hugging Face model itself, inside any wrapper (DDP, torch.compile)."""
    for part in model.modules():
        if isinstance(part, PreTrainedModel):
            return part
    raise TrainingError(f"{type(model).__name__} holds no Hugging Face model (transformers.PreTrainedModel)")


@dataclass(frozen=True)
class Counts:
    """Parameters by part: trainable ones, and all. A parameter that modules share counts once."""

    trained: Mapping[Part, int]
    total: Mapping[Part, int]

    @property
    def num_trained(self) -> int:
        """How many parameters train."""
        return sum(self.trained.values())

    @property
    def num_total(self) -> int:
        """How many parameters there are."""
        return sum(self.total.values())

    @property
    def sentence(self) -> str:
        """The counts in one line."""
        shown = sorted(((n, part) for part, n in self.trained.items() if n), key=lambda pair: -pair[0])
        split = ", ".join(f"{part} {n:,}" for n, part in shown) or "none"
        return f"trains {self.num_trained:,} of {self.num_total:,} parameters: {split}"


def count_parameters(model: nn.Module) -> Counts:
    """Count a model's parameters by part; a part that the model lacks has 0."""
    trained: dict[Part, int] = dict.fromkeys(PARTS, 0)
    total: dict[Part, int] = dict.fromkeys(PARTS, 0)
    for _, parameter, part in parameters_by_part(model):
        total[part] += parameter.numel()
        trained[part] += parameter.numel() * parameter.requires_grad
    return Counts(trained, total)


def make_generator(seed: int, name: str) -> torch.Generator:
    """Return the generator for an added tensor: its initial values depend only on the seed and its name."""
    return torch.Generator().manual_seed(int(keys_of(seed, name_key(name))) >> 1)
