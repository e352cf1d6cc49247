"""A data audit: the size and quality of a corpus, and flags for what would invalidate a comparison."""

from array import array
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..sources.cleaning import Cleaning, digest_of
from ..sources.source import Source
from ..tokenizers.builders import FastTokenizer
from .overlap import RUN, Overlap, find_overlap
from .text_quality import LONG, MARKS, Encoding, Punctuation

EVERY = 1000
"""Documents between two calls of `progress`."""
QUANTILES = {"shortest": 0.0, "5 % below": 0.05, "median": 0.5, "95 % below": 0.95, "longest": 1.0}
GROWTH = 0.2
"""Width of a bin of the histogram, relative to its lower edge."""
MAX_DUPLICATES, MAX_UNKNOWN, MAX_OVERLAP = 0.01, 0.01, 0.001
"""Shares above which duplicates, unknown tokens and overlap are flagged."""


@dataclass
class DataAudit:
    """The figures of a corpus; `flags` are sentences about problems, empty if there are none."""

    name: str
    kind: str
    hash: str
    num_documents: int = 0
    num_empty: int = 0
    num_words: int = 0
    num_characters: int = 0
    num_duplicates: int = 0
    """Documents identical to an earlier one."""
    num_tokens: int | None = None
    """Tokens of text, without special ones; None without a tokenizer."""
    num_unknown: int | None = None
    vocabulary_size: int | None = None
    lengths: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """The length of each document, in tokens if there is a tokenizer, else in words."""
    encoding: Encoding = field(default_factory=Encoding)
    punctuation: Punctuation = field(default_factory=Punctuation)
    removed: list[dict[str, Any]] = field(default_factory=list)
    against: str | None = None
    overlap: Overlap | None = None

    @property
    def unit(self) -> str:
        """The unit of lengths."""
        return "words" if self.num_tokens is None else "tokens"

    @property
    def unknown_share(self) -> float | None:
        """The share of unknown tokens; None if the tokenizer has no unknown token."""
        return None if self.num_unknown is None else self.num_unknown / max(self.num_tokens or 0, 1)

    @property
    def mean_length(self) -> float:
        """The mean length of a document."""
        return float(self.lengths.mean()) if self.lengths.size else 0.0

    @property
    def quantiles(self) -> dict[str, int]:
        """Quantiles of the lengths of documents."""
        if not self.lengths.size:
            return {}
        values = np.quantile(self.lengths, list(QUANTILES.values()), method="lower")
        return {name: int(value) for name, value in zip(QUANTILES, values, strict=True)}

    @property
    def flags(self) -> list[str]:
        """Problems to resolve before training on this corpus, one sentence each."""
        flags = []
        broken = self.encoding.replaced + self.encoding.mojibake
        if broken:
            flags.append(
                f"{broken:,} of {self.num_documents:,} documents have broken characters, the first in "
                f"{self.encoding.first}; read the original with the right encoding."
            )
        if self.punctuation.is_stripped:
            marks = self.punctuation.marks
            flags.append(
                f"Punctuation seems stripped: {self.punctuation.bare_share:.0%} of the lines of {LONG} or more words "
                f"have none of {MARKS} and there are {marks['.']:,} full stops and {marks[',']:,} commas. A model "
                "trained on it is evaluated on different text; use the original."
            )
        share = self.num_duplicates / max(self.num_documents, 1)
        if share > MAX_DUPLICATES:
            flags.append(
                f"{self.num_duplicates:,} of {self.num_documents:,} documents ({share:.1%}) are identical to an "
                "earlier one; the cleaning step 'duplicates' removes them."
            )
        unknown = self.unknown_share or 0.0
        if unknown > MAX_UNKNOWN:
            flags.append(
                f"{unknown:.1%} of the tokens are unknown to the tokenizer; use a subword tokenizer, a larger "
                "vocabulary, or a tokenizer made for such text."
            )
        if self.overlap is not None and max(self.overlap.line_share, self.overlap.run_share) > MAX_OVERLAP:
            flags.append(
                f"{self.overlap.line_share:.1%} of the lines and {self.overlap.run_share:.1%} of the sequences of "
                f"{RUN} words of {self.against} also occur in {self.name}: evaluation text was seen in training."
            )
        return flags

    def record(self) -> dict[str, Any]:
        """Return all figures as plain data."""
        counts, edges = self.histogram()
        return {key: value for key, value in asdict(self).items() if key != "lengths"} | {
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
        """Count documents by length, in bins that widen with it: the counts, and the edges of the bins."""
        lengths = np.maximum(self.lengths, 1)
        shortest, longest = (int(lengths.min()), int(lengths.max())) if lengths.size else (1, 1)
        edges = [shortest]
        while edges[-1] <= longest:
            edges.append(edges[-1] + max(1, round(GROWTH * edges[-1])))
        return np.histogram(lengths, edges)[0].astype(np.int64), np.array(edges)


def audit_data(
    source: Source, tokenizer: FastTokenizer | None = None, against: Source | None = None,
    cleaning: str | Cleaning | None = None, progress: Callable[[int], None] | None = None,
) -> DataAudit:  # fmt: skip
    """Audit a corpus in one pass, with a few bytes of memory per document.

    `against` is a text that should not occur in it, such as the test set: the overlap is measured. `cleaning` runs
    first, and the audit records what it removed. `progress` is called with the number of documents so far.
    """
    cleaning = cleaning if isinstance(cleaning, Cleaning) else Cleaning.parse(cleaning or "")
    audit = DataAudit(source.name, source.kind, source.hash)
    cleaned, audit.removed = cleaning.run(source.documents())
    digests, lengths = array("Q"), array("q")
    documents = _count_documents(cleaned, audit, digests, progress)
    if tokenizer is None:
        lengths.extend(len(document.split()) for document in documents)
    else:
        _count_tokens(documents, tokenizer, audit, lengths)
    audit.lengths = np.frombuffer(lengths, dtype=np.int64) if lengths else audit.lengths
    audit.num_duplicates = len(digests) - np.unique(np.frombuffer(digests, dtype=np.uint64)).size if digests else 0
    if against is not None:
        audit.against = against.name
        audit.overlap = find_overlap(against.documents(), cleaning.run(source.documents())[0])
    return audit


def _count_documents(
    documents: Iterator[str], audit: DataAudit, digests: "array[int]", progress: Callable[[int], None] | None
) -> Iterator[str]:
    """Add documents to the figures that need no tokenizer, and yield those that are not empty."""
    for document in documents:
        if progress is not None and audit.num_documents % EVERY == 0:
            progress(audit.num_documents)
        audit.num_documents += 1
        audit.num_characters += len(document)
        audit.encoding.add(audit.num_documents, document)
        audit.punctuation.add(document)
        if not document.strip():
            audit.num_empty += 1
            continue
        digests.append(digest_of(document))
        yield document
    audit.num_words = audit.punctuation.num_words


def _count_tokens(documents: Iterator[str], tokenizer: FastTokenizer, audit: DataAudit, lengths: "array[int]") -> None:
    # Imported here, since an audit without a tokenizer does not need it.
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
