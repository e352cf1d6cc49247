"""Text to token batches: sources, cleaning, tokenizers, packing, masking, seeded order.

Names load on first use: reading a source needs neither torch nor transformers, and packing must stay small.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnlab.lazy import load_on_first_use

if TYPE_CHECKING:
    from .arrangement import Arrangement, Position
    from .audit import DataAudit, audit_data
    from .cleaning import STEPS, Cleaning
    from .embedded import SETS, make_probe
    from .loader import BatchPlan, Loader
    from .masking import Masking, example_keys, mask_tokens
    from .order import Order
    from .packing import pack
    from .probes import PROBES, Probe
    from .sequences import Sequences
    from .source import Source, open_source
    from .tokenfile import TokenFile
    from .tokenizer import load_tokenizer
    from .training import train_tokenizer
    from .vocabulary import Vocabulary, check_belongs, hash_tokenizer

HOMES = {
    "DataAudit": "audit", "audit_data": "audit",
    "STEPS": "cleaning", "Cleaning": "cleaning",
    "SETS": "embedded", "make_probe": "embedded",
    "Arrangement": "arrangement", "BatchPlan": "loader", "Loader": "loader", "Position": "arrangement",
    "Masking": "masking", "example_keys": "masking", "mask_tokens": "masking",
    "Order": "order",
    "pack": "packing",
    "PROBES": "probes", "Probe": "probes",
    "Sequences": "sequences",
    "Source": "source", "open_source": "source",
    "TokenFile": "tokenfile",
    "load_tokenizer": "tokenizer",
    "train_tokenizer": "training",
    "Vocabulary": "vocabulary", "check_belongs": "vocabulary", "hash_tokenizer": "vocabulary",
}  # fmt: skip
"""The file of each public name."""

__all__ = [
    "PROBES", "SETS", "STEPS", "Arrangement", "BatchPlan", "Cleaning", "DataAudit", "Loader", "Masking", "Order",
    "Position", "Probe", "Sequences", "Source", "TokenFile", "Vocabulary", "audit_data", "check_belongs",
    "example_keys", "hash_tokenizer", "load_tokenizer", "make_probe", "mask_tokens", "open_source", "pack",
    "train_tokenizer",
]  # fmt: skip

__getattr__, __dir__ = load_on_first_use(__name__, HOMES)
