"""What the sizes of a trend may differ in: width, depth and heads. Any other difference makes them not comparable."""

from collections.abc import Iterator, Mapping
from typing import Any

from ..file.design import Design
from .run_table import RunTable

SCALED = frozenset({
    "d_ff", "d_kv", "d_model", "decoder_attention_heads", "decoder_ffn_dim", "decoder_layers", "dim", "embed_dim",
    "embedding_size", "encoder_attention_heads", "encoder_ffn_dim", "encoder_layers", "ffn_dim", "head_dim",
    "hidden_dim", "hidden_size", "intermediate_size", "n_embd", "n_head", "n_heads", "n_inner", "n_layer", "n_layers",
    "num_attention_heads", "num_heads", "num_hidden_layers", "num_key_value_heads", "num_layers",
})  # fmt: skip
"""Settings of a config that scale with the size of the model."""


def explain_other_sizes(study: Design, tables: Mapping[str, RunTable]) -> str:
    """Return in what else sizes differ, so that a trend would not be one of size; empty if in nothing that is known."""
    differences = [*_compare_settings(study), *_compare_tokens(study, tables)]
    return f"the sizes differ in {', '.join(differences)}" if differences else ""


def _compare_settings(study: Design) -> Iterator[str]:
    sizes = study.sizes.values()
    facts: dict[str, list[Any]] = {
        "architecture": [size.architecture for size in sizes],
        "whether they start from a checkpoint": [size.checkpoint is not None for size in sizes],
        "tokenizer": [size.tokenizer for size in sizes],
    }
    # What a checkpoint has in its own config is not in the study; its tokenizer is compared by its tokens.
    for name in dict.fromkeys(name for size in sizes for name in size.config):
        if name not in SCALED:
            facts[f"config.{name}"] = [size.config.get(name) for size in sizes]
    yield from (what for what, values in facts.items() if any(value != values[0] for value in values))


def _compare_tokens(study: Design, tables: Mapping[str, RunTable]) -> Iterator[str]:
    """Yield what the runs of the baseline's seeds train on or are evaluated on, if that depends on the size."""
    known: dict[tuple[str, int], set[str]] = {}
    for table in tables.values():
        for seed in table.runs[study.baseline]:
            for what, hashed in table.list_shared_hashes(study.baseline, seed).items():
                # Weights and their shapes, which are by name, differ with the size.
                if isinstance(hashed, str) and hashed:
                    known.setdefault((what, seed), set()).add(hashed)
    yield from dict.fromkeys(what for (what, _), hashes in known.items() if len(hashes) > 1)
