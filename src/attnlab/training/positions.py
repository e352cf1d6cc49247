"""How long a row a model can take: what it numbers positions with has so many numbers and no more."""

from __future__ import annotations

from transformers import PreTrainedModel

from attnlab.errors import TrainingError

from .tuning.parts import PROMPT


def check_positions(model: PreTrainedModel, length: int, what: str) -> None:
    """Refuse what is longer than a model can take, a prompt of its own included."""
    limit = positions_of(model)
    prompt = getattr(model, PROMPT, None)
    room = None if limit is None else limit - (0 if prompt is None else prompt.length)
    if room is not None and length > room:
        raise TrainingError(
            f"{what} has {length} tokens, and this {type(model).__name__} has positions for {room}; make it shorter "
            "(rows by task_settings.max_len, or a segment's length), or build a model with more "
            "(max_position_embeddings)"
        )


def positions_of(body: PreTrainedModel) -> int | None:
    """Return how many tokens a body can number, or None where it does not say."""
    stated = getattr(body.config, "max_position_embeddings", None)
    for name, module in body.named_modules():
        # RoBERTa counts from the padding's number on, and cannot use the positions up to it.
        if stated and name.endswith("position_embeddings") and getattr(module, "padding_idx", None) is not None:
            return int(stated - module.padding_idx - 1)
    return stated
