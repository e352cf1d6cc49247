"""Text to token batches: sources, cleaning, tokenizers, packing, masking, seeded order.

Names load on first use: reading a source needs neither torch nor transformers, and packing must stay small.
"""

from typing import TYPE_CHECKING

from attnlab.lazy import load_on_first_use

if TYPE_CHECKING:
    from .audit.data_audit import DataAudit, audit_data
    from .batches.arrangement import Arrangement, Position
    from .batches.loader import BatchPlan, Loader
    from .batches.masking import Masking, example_keys, mask_tokens
    from .batches.order import Order
    from .batches.sequences import Sequences
    from .embedded.sets import SETS, make_probe
    from .probes import PROBES, Probe
    from .sources.cleaning import STEPS, Cleaning
    from .sources.source import Source, open_source
    from .tokenizers.loading import load_tokenizer
    from .tokenizers.training import train_tokenizer
    from .tokenizers.vocabulary import Vocabulary, check_belongs, hash_tokenizer
    from .tokens.packing import pack
    from .tokens.tokenfile import TokenFile

__all__ = [
    "PROBES", "SETS", "STEPS", "Arrangement", "BatchPlan", "Cleaning", "DataAudit", "Loader", "Masking", "Order",
    "Position", "Probe", "Sequences", "Source", "TokenFile", "Vocabulary", "audit_data", "check_belongs",
    "example_keys", "hash_tokenizer", "load_tokenizer", "make_probe", "mask_tokens", "open_source", "pack",
    "train_tokenizer",
]  # fmt: skip

__getattr__, __dir__ = load_on_first_use(__name__)
