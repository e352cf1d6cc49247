"""Columns of spreads, such as `acc_std`: which column of means each belongs to, by name.

The two names may differ in the alias of a metric (`perplexity` and `ppl_std`), in words for a direction or a
percentage, or in words that only one of them has (`test accuracy` and `test std`).
"""

from collections.abc import Mapping, Sequence

from .column_names import ERRORS, RANGES, SDS, is_aggregate, is_setting
from .metrics import SYNONYMS, recognise_metric, remove_direction, split_words
from .patterns import MEANS
from .rows import TextTable

Words = tuple[str, ...]
PHRASES = {
    ("standard", "deviation"): "std", ("std", "dev"): "std", ("standard", "error"): "stderr",
    ("std", "error"): "stderr", ("std", "err"): "stderr",
}  # fmt: skip
"""Words for a spread that are written as two."""
FILLERS = frozenset({"score", "scores", "percent", "pct", "95", "of"})
"""Words of a name of scores that do not say which scores."""
NEGATIONS = frozenset({"w", "wo", "without", "no", "with"})
"""Words of an arm, as in `ours w/o SD`, where SD is a part of a model."""


def find_kind(name: str) -> str:
    """Return the word for a spread in a name, such as `std` in acc_std; empty if there is none."""
    words = _split(name)
    if NEGATIONS & {*words}:
        return ""
    kinds = [word for word in words if word in ERRORS] or [word for word in words[-1:] if word in (*SDS, *RANGES)]
    kinds = kinds or [word for word in words[:1] if word in SDS and word != "sd" and recognise_metric(name)]
    return kinds[0] if kinds else ""


def find_spreads(
    rows: TextTable, names: Sequence[str], has_num_seeds: bool
) -> tuple[dict[str, str], list[str], list[str]]:
    """Return the column with the spread of each column of means, standard errors and ranges, and spreads of no column.

    has_num_seeds: the table gives numbers of seeds. A standard error is a spread over seeds beside one, or beside a
    column that is named as a mean, such as acc_mean; otherwise it is over examples.
    """
    kinds = {name: kind for name in names if (kind := find_kind(name))}
    means = [name for name in names if name not in kinds]
    spreads, errors, lone = dict[str, str](), list[str](), list[str]()
    left: list[str] = []
    for name, kind in kinds.items():
        mean = _find_same(name, kind, names)
        if mean and _is_over_seeds(kind, mean, has_num_seeds):
            spreads[mean] = name
        elif mean or kind in ("stderr", "sem"):
            errors.append(name)
        else:
            left.append(name)
    scores = [name for name in means if name not in spreads and rows.is_numeric(name) and not is_setting(name)]
    for name in left:
        mean = _find_similar(name, kinds[name], [score for score in scores if not is_aggregate(score)])
        if mean and mean not in spreads and _is_over_seeds(kinds[name], mean, has_num_seeds):
            spreads[mean] = name
        elif kinds[name] in (*SDS, *ERRORS) and rows.is_numeric(name):
            lone.append(name)
    return spreads, errors, lone


def _is_over_seeds(kind: str, mean: str, has_num_seeds: bool) -> bool:
    """Tell whether a spread is one over seeds."""
    is_beside_seeds = has_num_seeds or bool({*split_words(mean)} & {*MEANS})
    return kind in SDS or (kind in ERRORS and is_beside_seeds)


def _split(name: str) -> Words:
    """Return the words of a name, where a spread in two words is one, such as `std dev`."""
    words, joined = split_words(remove_direction(name)), list[str]()
    for word in words:
        joined.append(word)
        if tuple(joined[-2:]) in PHRASES:
            joined[-2:] = [PHRASES[joined[-2], joined[-1]]]
    return tuple(joined)


def _find_stem(name: str, kind: str, is_standard: bool) -> Words:
    """Return the words of a name without those for a mean and for its spread.

    is_standard: also without words that do not say which scores, and with one word for each metric.
    """
    words = [word for word in _split(name) if word not in MEANS and word != kind]
    if not is_standard:
        return tuple(words)
    joined: list[str] = []
    for word in words:
        joined.append(word)
        if "".join(joined[-2:]) in SYNONYMS:
            joined[-2:] = ["".join(joined[-2:])]
    kept = [word for word in joined if word not in FILLERS] or joined
    return tuple(SYNONYMS.get(word, word) for word in kept)


def _find_same(name: str, kind: str, names: Sequence[str]) -> str:
    """Return the column whose name says the same without the spread, at best in the same words; empty without one."""
    others = [other for other in names if other not in ("", name) and find_kind(other) != kind]
    same = [other for other in others if _find_stem(other, "", False) == _find_stem(name, kind, False)]
    if same:
        return same[-1]
    stem = _find_stem(name, kind, True)
    same = [other for other in others if stem and _find_stem(other, "", True) == stem]
    return same[0] if len(same) == 1 else ""


def _find_similar(name: str, kind: str, scores: Sequence[str]) -> str:
    """Return the only column of scores whose name has all words of a spread's name, or the reverse; empty without one.

    If several columns have them, whose spread it is stays open.
    """
    stem = {*_find_stem(name, kind, True)}
    words: Mapping[str, set[str]] = {score: {*_find_stem(score, "", True)} for score in scores}
    similar = [score for score in scores if stem and words[score] and (stem <= words[score] or words[score] <= stem)]
    return similar[0] if len(similar) == 1 else ""
