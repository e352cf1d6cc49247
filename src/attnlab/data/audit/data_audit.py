"""A data audit: what a corpus is made of, and what in it would ruin a comparison."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..sources.cleaning import Cleaning, digest_of
from ..sources.source import Source
from .flags import raise_flags
from .overlap import Overlap, find_overlap
from .signs import Encoding, Punctuation

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

EVERY = 1000
"""Documents between two calls of `progress`."""
QUANTILES = {"shortest": 0.0, "5 % below": 0.05, "median": 0.5, "95 % below": 0.95, "longest": 1.0}
GROWTH = 0.2
"""How much wider a bin of the histogram is for each step of its lower edge."""


@dataclass
class DataAudit:
    """What was found in a corpus. `flags` are sentences about what should be looked at; none is good."""

    name: str
    kind: str
    hash: str
    num_documents: int = 0
    num_empty: int = 0
    num_words: int = 0
    num_characters: int = 0
    num_duplicates: int = 0
    """Documents that came before, letter for letter."""
    num_tokens: int | None = None
    """Tokens of text, without special ones; None without a tokenizer."""
    num_unknown: int | None = None
    vocabulary_size: int | None = None
    lengths: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """The length of each document, in tokens where there is a tokenizer, else in words."""
    encoding: Encoding = field(default_factory=Encoding)
    punctuation: Punctuation = field(default_factory=Punctuation)
    removed: list[dict[str, Any]] = field(default_factory=list)
    against: str | None = None
    overlap: Overlap | None = None

    @property
    def unit(self) -> str:
        """What lengths are counted in."""
        return "words" if self.num_tokens is None else "tokens"

    @property
    def unknown_share(self) -> float | None:
        """The share of tokens that the tokenizer does not know; None where it knows all there can be."""
        return None if self.num_unknown is None else self.num_unknown / max(self.num_tokens or 0, 1)

    @property
    def mean_length(self) -> float:
        """How long a document is on average."""
        return float(self.lengths.mean()) if self.lengths.size else 0.0

    @property
    def quantiles(self) -> dict[str, int]:
        """How long documents are."""
        if not self.lengths.size:
            return {}
        values = np.quantile(self.lengths, list(QUANTILES.values()), method="lower")
        return {name: int(value) for name, value in zip(QUANTILES, values, strict=True)}

    @property
    def flags(self) -> list[str]:
        """What should be looked at before anyone trains on this."""
        return raise_flags(self)

    def record(self) -> dict[str, Any]:
        """Return everything as plain data, for programs to read."""
        plain = {key: value for key, value in asdict(self).items() if key != "lengths"}
        counts, edges = self.histogram()
        return plain | {
            "length_unit": self.unit,
            "length_mean": self.mean_length,
            "length_quantiles": self.quantiles,
            "length_histogram": {"edges": edges.tolist(), "counts": counts.tolist()},
            "unknown_share": self.unknown_share,
            "bare_share": self.punctuation.bare_share,
            "punctuation_is_stripped": self.punctuation.is_stripped,
            "flags": self.flags,
        }

    def histogram(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Count documents by length, in bins that grow with it: counts, and the edges around them."""
        lengths = np.maximum(self.lengths, 1)
        shortest, longest = (int(lengths.min()), int(lengths.max())) if lengths.size else (1, 1)
        edges = [shortest]
        while edges[-1] <= longest:
            edges.append(edges[-1] + max(1, round(GROWTH * edges[-1])))
        return np.histogram(lengths, edges)[0].astype(np.int64), np.array(edges)


def audit_data(
    source: Source,
    tokenizer: PreTrainedTokenizerFast | None = None,
    against: Source | None = None,
    cleaning: str | Cleaning | None = None,
    progress: Callable[[int], None] | None = None,
) -> DataAudit:
    """Read a corpus once, in memory of some bytes a document, and say what is in it.

    `against` is a text that should not be in it, such as the test set: its overlap is measured. `cleaning` is done
    first, and what it removed is told. `progress` is called with the number of documents now and then.
    """
    cleaning = cleaning if isinstance(cleaning, Cleaning) else Cleaning.parse(cleaning or "")
    audit = DataAudit(source.name, source.kind, source.hash)
    cleaned = cleaning.run(source.documents())
    digests, lengths = array("Q"), array("q")
    documents = _looked_at(_told(cleaned.documents, progress), audit, digests)
    if tokenizer is None:
        lengths.extend(len(document.split()) for document in documents)
    else:
        _count_tokens(documents, tokenizer, audit, lengths)
    audit.lengths = np.frombuffer(lengths, dtype=np.int64) if lengths else audit.lengths
    audit.num_duplicates = len(digests) - np.unique(np.frombuffer(digests, dtype=np.uint64)).size if digests else 0
    audit.removed = cleaned.record()
    if against is not None:
        audit.against = against.name
        audit.overlap = find_overlap(against.documents(), cleaning.run(source.documents()).documents)
    return audit


def _told(documents: Iterator[str], progress: Callable[[int], None] | None) -> Iterator[str]:
    for number, document in enumerate(documents):
        if progress is not None and number % EVERY == 0:
            progress(number)
        yield document


def _looked_at(documents: Iterator[str], audit: DataAudit, digests: array[int]) -> Iterator[str]:
    """Count what needs no tokenizer as documents pass by; empty ones go no further."""
    for document in documents:
        audit.num_documents += 1
        audit.num_characters += len(document)
        audit.encoding.look(audit.num_documents, document)
        audit.punctuation.look(document)
        if not document.strip():
            audit.num_empty += 1
            continue
        digests.append(digest_of(document))
        yield document
    audit.num_words = audit.punctuation.num_words


def _count_tokens(
    documents: Iterator[str], tokenizer: PreTrainedTokenizerFast, audit: DataAudit, lengths: array[int]
) -> None:
    # Imported here: encoding in batches is packing's, and an audit without a tokenizer needs none of it.
    from ..tokenizers.vocabulary import Vocabulary
    from ..tokens.packing import encode, plain_backend

    vocabulary = Vocabulary.of(tokenizer)
    audit.num_tokens = 0
    audit.vocabulary_size = vocabulary.size
    audit.num_unknown = None if vocabulary.unknown is None else 0
    for ids, counts in encode(documents, plain_backend(tokenizer), vocabulary):
        lengths.extend((counts - 1).tolist())
        audit.num_tokens += int((counts - 1).sum())
        if audit.num_unknown is not None:
            audit.num_unknown += int((ids == vocabulary.unknown).sum())
