"""Tune a model as a `Tuning` says: add what it adds, then let exactly its parts train and freeze the rest."""

from __future__ import annotations

from transformers import PreTrainedModel

from attnlab.errors import TrainingError
from attnlab.install import mechanism_of, set_prefix
from attnlab.install.saving import UNSAVED

from ..spec import Tuning
from .lora import add_lora
from .parts import PARTS, Part, parameters_by_part
from .prompt import add_prompt

ADDED: tuple[Part, ...] = ("prompt", "prefix", "lora")


def apply_tuning(model: PreTrainedModel, tuning: Tuning, *, has_new_head: bool, seed: int = 0) -> None:
    """Tune a model in place; what is refused leaves it as it was.

    A mechanism is installed before, optimizers are made after.
    has_new_head: whether the head starts anew for the task (classification, questions) and so must train in every
    mode; a language model's head came with its body, and stays frozen beside a prompt, a prefix and LoRA.
    seed: what is added starts from it and from its name; torch's own generator is left alone.
    """
    check(model, seed)
    parts: set[Part] = set(PARTS) if tuning.mode == "full" else {tuning.mode}
    if has_new_head:
        parts.add("head")
    if tuning.mode != "full" and "head" in parts:
        check_head(model, tuning)
    if tuning.mode == "prompt":
        add_prompt(model, tuning.length, seed)
    elif tuning.mode == "prefix":
        check_mechanism(model)
        set_prefix(model, tuning.length, seed=seed)
    elif tuning.mode == "lora":
        add_lora(model, tuning, seed)
    if tuning.mode in ("prompt", "lora"):
        vars(model)[UNSAVED] = "a prompt" if tuning.mode == "prompt" else "LoRA adapters"
    for _, parameter, part in parameters_by_part(model):
        if parameter.is_floating_point():
            parameter.requires_grad_(part in parts)


def check(model: PreTrainedModel, seed: int) -> None:
    """Refuse what is no Hugging Face model, is wrapped or compiled already, or holds something tuning added."""
    if not isinstance(model, PreTrainedModel) or getattr(model, "_compiled_call_impl", None) is not None:
        kind = "one that is compiled already" if isinstance(model, PreTrainedModel) else type(model).__name__
        raise TrainingError(
            f"tuning needs a Hugging Face model (transformers.PreTrainedModel), not {kind}; tune it first, then "
            "wrap or compile it"
        )
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise TrainingError(f"seed must be a whole number, not {seed!r}")
    for _, _, part in parameters_by_part(model):
        if part in ADDED:
            raise TrainingError(
                f"this {type(model).__name__} holds a {part} already; tune a model as it was built or loaded"
            )


def check_head(model: PreTrainedModel, tuning: Tuning) -> None:
    """Refuse to train the head of a model that has none of its own."""
    if not any(part == "head" for _, _, part in parameters_by_part(model)):
        why = (
            "it is a body without a head"
            if model.base_model is model
            else "all of its head is tied to the body (a language model's head is its input embedding)"
        )
        raise TrainingError(
            f"tuning '{tuning.mode}' is to train the head of this {type(model).__name__}, which has none of its own: "
            f"{why}; build it with the task's head, or tune another way"
        )


def check_mechanism(model: PreTrainedModel) -> None:
    """Refuse a model that attends by transformers' functions, which have no place for a prefix."""
    if mechanism_of(model) is None:
        raise TrainingError(
            f"a prefix is put before the keys by attnlab's attention, and this {type(model).__name__} has none; call "
            "attnlab.install(model, 'dot | softmax') first, which computes what the model did"
        )
