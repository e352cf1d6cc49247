"""The longest row that a model accepts: the number of its positions, less those of a prompt."""

from transformers import PreTrainedModel

from attnlab.errors import TrainingError

from .parts import PROMPT


def check_positions(model: PreTrainedModel, length: int, what: str) -> None:
    """Raise an error if a row of some length does not fit into a model."""
    available = count_free_positions(model)
    if available is not None and length > available:
        raise TrainingError(
            f"{what} has {length} tokens, and this {type(model).__name__} has positions for {available}; make it "
            "shorter (rows by task_settings.max_len, or a segment's length), or build a model with more "
            f"({name_field(model)})"
        )


def name_field(model: PreTrainedModel) -> str:
    """Return what the config of a model's family calls its number of positions, such as n_positions for GPT-2."""
    return str(model.config.attribute_map.get("max_position_embeddings", "max_position_embeddings"))


def count_free_positions(model: PreTrainedModel) -> int | None:
    """Return how many positions a model has for tokens, without those of a learned prompt; None if unknown."""
    limit = count_positions(model)
    prompt = getattr(model, PROMPT, None)
    return None if limit is None else limit - (0 if prompt is None else prompt.length)


def count_positions(model: PreTrainedModel) -> int | None:
    """Return how many positions a model has, or None if its config does not say."""
    stated = getattr(model.config, "max_position_embeddings", None)
    for name, module in model.named_modules():
        # RoBERTa numbers positions from its padding index on, and cannot use those up to it.
        if stated and name.endswith("position_embeddings") and getattr(module, "padding_idx", None) is not None:
            return int(stated - module.padding_idx - 1)
    return stated
