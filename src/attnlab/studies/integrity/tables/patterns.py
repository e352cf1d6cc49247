"""Patterns of column names, such as `base_4l_em_9`, or `s1`, `s2`, … for seeds: given, or found in the names."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress

from attnlab.errors import RequestError

from .metrics import recognise_metric

IN_PATTERN = ("arm", "group", "metric", "seed")
BASELINES = ("baseline", "base", "control", "vanilla", "standard", "reference", "default", "softmax")
SEED = re.compile(r"(?:seed|run|trial|rep|s|r)?\d+", re.IGNORECASE)
NAMED_SEED = re.compile(r"(seed|run|trial|rep)\d+", re.IGNORECASE)
BETWEEN = re.compile(r"([^A-Za-z0-9]+)")
SEED_WORD = (
    r"(?:(?P<metric>.*[^A-Za-z0-9]))??(?P<word>(?:random )?seed|run|trial|rep|replicate|repeat|fold|s|#)"
    r"(?P<sign>[-_=. #:]*)"
)
SEED_COLUMN = re.compile(rf"{SEED_WORD}(?P<seed>\d+)", re.IGNORECASE)
"""The name of a column that holds the scores of one seed, such as s1, run_2, seed=0 or acc_seed3."""
SEED_HEAD = re.compile(SEED_WORD, re.IGNORECASE)
MEANS = ("mean", "avg", "average")
MEAN_SUFFIX = re.compile(rf"(?<=[A-Za-z0-9)])[^A-Za-z0-9()]+(?:{'|'.join(MEANS)})\.?$", re.IGNORECASE)
SIGNS = "-_=. #:/"
WORD = r"[^_/:. ]+?|.+?"


@dataclass(frozen=True)
class ColumnPattern:
    """The pattern of column names, such as `{arm}_{group}_{metric}_{seed}`, and the parts of each name."""

    text: str
    meanings: Mapping[str, Mapping[str, str]]

    @property
    def are_tasks(self) -> bool:
        """Whether each column is a dataset or task, and nothing else."""
        return {*re.findall(r"\{(\w+)\}", self.text)} == {"group"}

    @property
    def metrics(self) -> list[str]:
        """The metrics in the names of the columns."""
        return list(dict.fromkeys(parts["metric"] for parts in self.meanings.values() if "metric" in parts))

    def read_metrics_as_tasks(self) -> "ColumnPattern":
        """Return the pattern with tasks in place of metrics, as in MNLI_s1 if the metric is named elsewhere."""
        meanings = {
            name: {part: text for part, text in parts.items() if part != "metric"}
            | {"group": " ".join(filter(None, (parts.get("group"), parts.get("metric"))))}
            for name, parts in self.meanings.items()
        }
        return ColumnPattern(self.text.replace("{metric}", "{group}"), meanings)


def read_pattern(text: str, names: Sequence[str]) -> ColumnPattern:
    """Read names by a pattern; columns that do not fit are not used."""
    parts = re.findall(r"\{(\w+)\}", text)
    single = [part for part in parts if part != "group"]
    if not parts or len(set(single)) < len(single) or not set(parts) <= set(IN_PATTERN):
        raise RequestError(
            f"columns={text}: a pattern consists of {{arm}}, {{group}}, {{metric}} and {{seed}}, each but {{group}} at "
            "most once, such as {arm}_{group}_{metric}_{seed}"
        )
    # A seed is a number, so that s{seed} does not fit `std`; other names of seeds are read if no number fits.
    meanings = _match_names(text, names) or _match_names(text, names, WORD)
    if not meanings:
        raise RequestError(f"columns={text} fits no column; the columns are {', '.join(names[:8])}")
    return ColumnPattern(text, meanings)


def fits_pattern(text: str, name: str) -> bool:
    """Tell whether the name of a column has the form of a pattern."""
    return bool(_match_names(text, [name]))


def _match_names(text: str, names: Sequence[str], seed: str = f"(?i:{SEED.pattern})") -> dict[str, dict[str, str]]:
    """Return the parts of each name that fits a pattern. seed: the expression of a seed."""
    parts = re.findall(r"\{(\w+)\}", text)
    literal = re.split(r"\{\w+\}", text)
    expression = re.escape(literal[0])
    for part, after in zip(parts, literal[1:], strict=True):
        # A group may contain separators, such as the size 4l_256.
        is_wide = part == "group" and parts.count("group") == 1
        expression += f"({'.+' if is_wide else seed if part == 'seed' else WORD})" + re.escape(after)
    # In acc_s{seed} the words before the seed name the metric.
    head = SEED_HEAD.fullmatch(literal[0]) if parts[0] == "seed" else None
    constant = {"metric": head["metric"].rstrip(SIGNS)} if head and head["metric"] and "metric" not in parts else {}
    return {
        name: {
            part: "_".join(compress(match.groups(), [other == part for other in parts]))
            for part in dict.fromkeys(parts)
        }
        | constant
        for name in names
        if (match := re.fullmatch(expression, name))
    }


def find_mean_suffix(names: Sequence[str]) -> str:
    """Return the end that all names share and that says that they are means, such as `_mean`; empty without one."""
    suffixes = {match[0] if (match := MEAN_SUFFIX.search(name)) else "" for name in names}
    return suffixes.pop() if len(suffixes) == 1 else ""


def guess_pattern_of_means(names: Sequence[str], wanted: Sequence[str]) -> tuple[str | None, ColumnPattern | None]:
    """Find the form that most names have and the pattern of all, where `_mean` at the end of all names is no part."""
    suffix = find_mean_suffix(names)
    stems = {name.removesuffix(suffix): name for name in names}
    form, pattern = guess_form(list(stems), wanted), guess_pattern(list(stems), wanted)
    if pattern is not None:
        meanings = {stems[stem]: parts for stem, parts in pattern.meanings.items()}
        pattern = ColumnPattern(f"{pattern.text}{suffix}", meanings)
    return None if form is None else f"{form}{suffix}", pattern


def guess_pattern(names: Sequence[str], wanted: Sequence[str]) -> ColumnPattern | None:
    """Find the pattern of all names; None if there is none, or if it leaves an arm without another to compare with."""
    text = guess_form(names, wanted)
    pattern = None if text is None else read_pattern(text, names)
    return pattern if pattern is not None and len(pattern.meanings) == len(names) and _compares_arms(pattern) else None


def guess_form(names: Sequence[str], wanted: Sequence[str]) -> str | None:
    """Return the text of the pattern that most names have; None if there is none, or none with the wanted parts."""
    words = {name: BETWEEN.split(name)[::2] for name in names}
    length, count = Counter(len(split) for split in words.values()).most_common(1)[0] if words else (0, 0)
    if count < 2 or 2 * count <= len(names):
        return None
    words = {name: split for name, split in words.items() if len(split) == length}
    columns = list(zip(*words.values(), strict=True))
    roles = _assign_parts(columns, wanted)
    if "arm" in wanted and "arm" not in roles:
        return None
    # An empty word, as behind the bracket of `ours (full)`, is no part.
    parts = [f"{{{role}}}" if any(column) else "" for role, column in zip(roles, columns, strict=True)]
    between = BETWEEN.split(next(iter(words)))[1::2]
    text = "".join(f"{part}{sign}" for part, sign in zip(parts, [*between, ""], strict=True))
    text = re.sub(r"\{group\}([^{]+\{group\})+", "{group}", text)
    return text if len(_match_names(text, names)) > 1 else None


def _compares_arms(pattern: ColumnPattern) -> bool:
    """Tell whether each arm has another one in some group and metric."""
    if "{arm}" not in pattern.text:
        return True
    arms: dict[tuple[str, str], set[str]] = {}
    for parts in pattern.meanings.values():
        arms.setdefault((parts.get("group", ""), parts.get("metric", "")), set()).add(parts["arm"])
    compared = set[str]().union(*(of_group for of_group in arms.values() if len(of_group) > 1))
    return compared == {parts["arm"] for parts in pattern.meanings.values()}


def _assign_parts(columns: Sequence[Sequence[str]], wanted: Sequence[str]) -> list[str]:
    """Assign a part to each position: seeds are numbers, metrics have known names, the first of the rest is the arm."""
    roles = ["group"] * len(columns)
    varying = [place for place, words in enumerate(columns) if len(set(words)) > 1]
    if "seed" in wanted:
        seeds = [place for place in varying if all(map(SEED.fullmatch, columns[place]))]
        named = [place for place in seeds if all(map(NAMED_SEED.fullmatch, columns[place]))]
        if seeds:
            roles[(named or seeds)[-1]] = "seed"
    if "metric" in wanted:
        metrics = [place for place, words in enumerate(columns) if all(map(recognise_metric, words))]
        metrics = [place for place in metrics if roles[place] == "group"]
        if metrics:
            roles[metrics[-1]] = "metric"
    if "arm" in wanted:
        left = [place for place in varying if roles[place] == "group"]
        known = [place for place in left if any(word.lower() in BASELINES for word in columns[place])]
        if left:
            roles[(known or left)[0]] = "arm"
    return roles


def find_seed_columns(names: Sequence[str]) -> ColumnPattern | None:
    """Find columns that hold one seed each, such as s1 … s5, run_1 …, or acc_seed1 …; None if there are none."""
    matches = {name: match for name in names if (match := SEED_COLUMN.fullmatch(name))}
    if len(matches) < 2 and len(names) > 1:
        numbers = [name for name in names if name.isdigit()]
        return read_pattern("{seed}", numbers) if len(numbers) > 1 else None
    metrics = {name: (match["metric"] or "").rstrip(SIGNS) for name, match in matches.items()}
    counts = Counter(metrics.values())
    matches = {name: match for name, match in matches.items() if counts[metrics[name]] > 1}
    if not matches:
        return None
    first = next(iter(matches.values()))
    literal = f"{first['word']}{first['sign']}{{seed}}"
    if len({metrics[name] for name in matches}) > 1:
        between = (first["metric"] or "")[len(metrics[next(iter(matches))]) :]
        literal = f"{{metric}}{between}{literal}"
    else:
        literal = f"{first['metric'] or ''}{literal}"
    return read_pattern(literal, names)
