"""What in a corpus would ruin a comparison: each a sentence that says what was found and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .overlap import RUN
from .signs import LONG, MARKS

if TYPE_CHECKING:
    from .data_audit import DataAudit

MOST_DUPLICATES, MOST_UNKNOWN, MOST_OVERLAP = 0.01, 0.01, 0.001
"""Shares above which duplicates, unknown tokens and overlap are worth a sentence."""


def raise_flags(audit: DataAudit) -> list[str]:
    """Return the sentences that apply; none is good."""
    return [*broken_characters(audit), *stripped_punctuation(audit), *repetition(audit), *leakage(audit)]


def broken_characters(audit: DataAudit) -> Iterator[str]:
    """Flag bytes that were lost, and UTF-8 that was read as something else."""
    broken = audit.encoding.replaced + audit.encoding.mojibake
    if broken:
        yield (
            f"{broken:,} of {audit.num_documents:,} documents have broken characters, the first in "
            f"{audit.encoding.first}; read the original with its right encoding."
        )


def stripped_punctuation(audit: DataAudit) -> Iterator[str]:
    """Flag a corpus without the punctuation that its lines need."""
    signs = audit.punctuation
    if signs.is_stripped:
        yield (
            f"Punctuation seems stripped: {signs.bare_share:.0%} of the lines of {LONG} or more words have none of "
            f"{MARKS} and there are {signs.marks['.']:,} full stops and {signs.marks[',']:,} commas. Models trained "
            "on it see other text than they are asked about; take the original."
        )


def repetition(audit: DataAudit) -> Iterator[str]:
    """Flag documents that came before, and tokens that say nothing."""
    share = audit.num_duplicates / max(audit.num_documents, 1)
    if share > MOST_DUPLICATES:
        yield (
            f"{audit.num_duplicates:,} of {audit.num_documents:,} documents ({share:.1%}) came before, letter for "
            "letter; the cleaning step 'duplicates' takes them out."
        )
    unknown = audit.unknown_share or 0.0
    if unknown > MOST_UNKNOWN:
        yield (
            f"{unknown:.1%} of the tokens are unknown to the tokenizer; one of pieces of words, a larger one, or one "
            "made for such text knows more."
        )


def leakage(audit: DataAudit) -> Iterator[str]:
    """Flag a held-out text that stands in what is trained on."""
    overlap = audit.overlap
    if overlap is not None and max(overlap.line_share, overlap.run_share) > MOST_OVERLAP:
        yield (
            f"{overlap.line_share:.1%} of the lines and {overlap.run_share:.1%} of the runs of {RUN} words of "
            f"{audit.against} stand in {audit.name}: what is measured there was seen in training."
        )
