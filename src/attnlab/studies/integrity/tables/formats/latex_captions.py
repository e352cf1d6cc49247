"""The caption of each LaTeX table of a text with several: the text of its float, or what stands before it."""

import re
from collections.abc import Sequence

from .latex_text import read_groups

Span = tuple[int, int]
FLOAT = re.compile(
    r"\\(begin|end)\{((?:sub|wrap|sideways|floating)?(?:table|figure)\*?|threeparttable|minipage|SCtable)\}"
)
CAPTION = re.compile(r"\\caption(?:of\{\w+\})?\*?(?:\[[^\]]*\])?(?=\{)")
REFERENCE = re.compile(r"\\(?:label|(?:eq|c|auto)?ref|cite[tp]?)\*?(?:\[[^\]]*\])?\{[^}]*\}")


def find_latex_captions(text: str, tables: Sequence[Span]) -> list[str]:
    """Return the text about each table: what its float says beside other tables; without a float, the text before it.

    tables: where each table begins and ends in the text.
    """
    floats = _find_floats(text)
    owns = [_find_float(floats, table) for table in tables]
    captions = []
    for number, (table, own) in enumerate(zip(tables, owns, strict=True)):
        others = [other_own or other for other, other_own in zip(tables, owns, strict=True) if other != table]
        start, end = max((span for span in floats if _contains(span, table)), default=(0, 0), key=_measure)
        if own is None:
            start = max((stop for _, stop in others if stop <= table[0]), default=0)
            end = len(text) if number == len(tables) - 1 else table[0]
        inside = [span for span in others if start <= span[0] and span[1] <= end and not _contains(span, table)]
        captions.append(REFERENCE.sub(" ", _cut(text, start, end, [table, *inside])) + _read_inner_caption(text, table))
    return captions


def _find_floats(text: str) -> list[Span]:
    """Return where each float begins and ends."""
    floats, open_floats = [], []
    for match in FLOAT.finditer(text):
        if match[1] == "begin":
            open_floats.append((match[2], match.start()))
        elif open_floats and open_floats[-1][0] == match[2]:
            floats.append((open_floats.pop()[1], match.end()))
    return floats


def _find_float(floats: Sequence[Span], table: Span) -> Span | None:
    """Return the smallest float that holds a table."""
    return min((span for span in floats if _contains(span, table)), default=None, key=_measure)


def _contains(outer: Span, inner: Span) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def _measure(span: Span) -> int:
    return span[1] - span[0]


def _cut(text: str, start: int, end: int, spans: Sequence[Span]) -> str:
    """Return a part of a text without some spans."""
    kept = []
    for first, last in sorted(spans):
        kept.append(text[start:first] if first > start else "")
        start = max(start, last)
    return " ".join([*kept, text[start:end]])


def _read_inner_caption(text: str, table: Span) -> str:
    r"""Return the captions inside a table itself, as in `longtable`."""
    return "".join(
        f" {' '.join(read_groups(text, match.end(), 1)[0])}" for match in CAPTION.finditer(text, table[0], table[1])
    )
