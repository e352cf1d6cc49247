"""Metrics whose names have a task, such as `SQuAD EM` or `F1 (NewsQA)`, or are one, such as `SST-2`."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from .metrics import FEW, KNOWN, PERCENT, add_direction, higher_is_better, read_direction, remove_direction, split_words
from .rows import list_columns
from .table import Cell, Run, group_cells, join_words

USUAL: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "sst2", "mnli", "mnlim", "mnlimm", "qnli", "rte", "wnli", "boolq", "copa", "wic", "wsc", "piqa",
            "hellaswag", "winogrande", "arce", "arcc", "arceasy", "arcchallenge", "openbookqa", "obqa", "sciq", "mmlu",
            "gsm8k", "race", "imdb",
        ),
        "accuracy",
    ),
    "cola": "Matthews",
    "stsb": "Pearson or Spearman",
    **dict.fromkeys(("mrpc", "qqp", "cb"), "accuracy or F1"),
    **dict.fromkeys(("squad", "squadv1", "squadv2", "multirc", "record", "triviaqa"), "EM or F1"),
}  # fmt: skip
"""The metric of usual tasks, each in one word. Of two usual ones, the last gives what is checked: its limits."""
WORDS = frozenset({"race", "record", "cb", "wic", "squad"})
"""Tasks whose names are also words or metrics: alone they name no task."""
METRICS = KNOWN - {*USUAL}
QUALIFIERS = frozenset({
    "eval", "evaluation", "test", "train", "training", "val", "valid", "validation", "dev", "best", "final", "last",
    "first", "max", "min", "mean", "avg", "average", "macro", "micro", "weighted", "balanced", "norm", "normalized",
    "top", "at", "per", "token", "word", "byte", "char", "total", "overall", "all", "metric", "metrics", "score",
    "log", "zero", "few", "shot", "matched", "mismatched",
})  # fmt: skip
"""Words that say which accuracy or loss it is, and name no task."""


@dataclass(frozen=True)
class TaskMetric:
    """A task and its metric. is_usual: the name has only the task, and the metric is the usual one."""

    task: str
    metric: str
    is_usual: bool = False


def split_tasks(
    cells: Sequence[Cell], budgets: Mapping[Run, Mapping[str, str]], named: str = ""
) -> tuple[tuple[Cell, ...], Mapping[Run, Mapping[str, str]], list[str]]:
    """Return cells and budgets with the task of a metric such as `SQuAD EM` as the group, and what was split, in words.

    named: the metric of the user or the caption, which tasks have whose names have none.
    """
    found = _find_tasks(group_cells(cells, lambda cell: cell.metric), named)
    settled = [_split_cell(cell, found[cell.metric]) if cell.metric in found else cell for cell in cells]
    runs = {new.run: old.run for old, new in zip(cells, settled, strict=True)}
    of_tasks = {run: budgets[old] for run, old in runs.items() if old in budgets} if found else budgets
    return tuple(settled), of_tasks, list(_describe(found, named))


def _split_cell(cell: Cell, found: TaskMetric) -> Cell:
    metric = add_direction(found.metric, cell.metric)
    return replace(cell, group=join_words(found.task, cell.group), metric=metric)


def _find_tasks(by_metric: Mapping[str, Sequence[Cell]], named: str) -> dict[str, TaskMetric]:
    """Return the task and the metric of each name that has a task.

    Names are split if one of the tasks is a usual one, or if tasks and metrics form a grid: a task has several metrics,
    of which another task has one too.
    """
    split = {name: one for name in by_metric if (one := split_task(name)) is not None}
    usual = _find_usual({name: cells for name, cells in by_metric.items() if name not in split}, named)
    known = {*map(_find_usual_task, (one.task for one in (*split.values(), *usual.values())))} - {""}
    has_usual = bool(known - WORDS) or len(known) > 1
    found = (split | usual) if has_usual else split if _is_grid([*split.values()]) else {}
    keys = {(one.task, one.metric) for one in found.values()}
    return found if len(keys) == len(found) else {}


def split_task(name: str) -> TaskMetric | None:
    """Split a name into its task and the known metric at its end or start; None if it has only one of them."""
    plain = remove_direction(name)
    words = [(match[0].lower(), *match.span()) for match in re.finditer(r"[A-Za-z0-9]+", plain)]
    for is_at_end in (True, False):
        num = _count_metric_words([word for word, *_ in (reversed(words) if is_at_end else words)], is_at_end)
        if not num:
            continue
        metric, task = (words[-num:], words[:-num]) if is_at_end else (words[:num], words[num:])
        if any(word not in QUALIFIERS and not word.isdigit() for word, *_ in task):
            return TaskMetric(_cut(plain, task), _cut(plain, metric))
    return None


def _count_metric_words(words: Sequence[str], is_reversed: bool) -> int:
    """Count the words of a metric with its qualifiers, such as 2 in `test acc`; 0 if they do not begin with one."""
    num = 0
    while num < len(words) and words[num] in QUALIFIERS:
        num += 1
    pair = "".join(reversed(words[num : num + 2]) if is_reversed else words[num : num + 2])
    length = 2 if num + 1 < len(words) and pair in METRICS else int(num < len(words) and words[num] in METRICS)
    if not length:
        return 0
    num += length
    while num < len(words) and words[num] in QUALIFIERS:
        num += 1
    return num


def _cut(name: str, words: Sequence[tuple[str, int, int]]) -> str:
    """Return the part of a name from its first to its last word, with a bracket that this part opens."""
    text = name[words[0][1] : words[-1][2]]
    return f"{text})" if text.count("(") > text.count(")") else text


def _find_usual(by_metric: Mapping[str, Sequence[Cell]], named: str) -> dict[str, TaskMetric]:
    """Return the usual tasks with their metrics, without those that are another by an arrow; none by their values."""
    found = {name: TaskMetric(remove_direction(name), named or USUAL[task], is_usual=True)
             for name in by_metric if (task := _find_usual_task(name))}  # fmt: skip
    values = [cell.number for name in found for cell in by_metric[name] if cell.value is not None]
    if sum(abs(value) > PERCENT for value in values) > FEW * len(values):
        return {}
    return {
        name: one for name, one in found.items() if not (read_direction(name) is False and higher_is_better(one.metric))
    }


def _find_usual_task(name: str) -> str:
    """Return the usual task at the end of a name, as in `Single sentence SST-2`, in one word; empty if there is none.

    A version or a split behind it is no part of its name, as in `SQuAD v1.1` and `MNLI test`.
    """
    words = split_words(remove_direction(name))
    while words and (words[-1] in QUALIFIERS or re.fullmatch(r"v?\d|m|mm", words[-1])):
        joined = next((end for start in range(len(words)) if (end := "".join(words[start:])) in USUAL), "")
        if joined:
            return joined
        words = words[:-1]
    return next((end for start in range(len(words)) if (end := "".join(words[start:])) in USUAL), "")


def _is_grid(columns: Sequence[TaskMetric]) -> bool:
    """Tell whether one task has several metrics, of which another task has one too."""
    metrics: dict[str, set[str]] = {}
    for column in columns:
        metrics.setdefault(column.task, set()).add(column.metric.lower())
    return any(
        len(of_task) > 1 and any(of_task & others for other, others in metrics.items() if other != task)
        for task, of_task in metrics.items()
    )


def _describe(found: Mapping[str, TaskMetric], named: str) -> Iterator[str]:
    """Say how names were split, and which metrics are assumed."""
    usual = group_cells((name for name, one in found.items() if one.is_usual), lambda name: found[name].metric)
    split = [name for name in found if not found[name].is_usual]
    if split:
        shown = ", ".join(f"'{name}' is {found[name].metric} of '{found[name].task}'" for name in split[:3])
        yield f"metrics are those of tasks: {shown}{', …' if len(split) > 3 else ''}"
    if usual and named:
        yield f"metric of {list_columns([name for names in usual.values() for name in names], 6)}: {named}"
    elif usual:
        shown = "; ".join(f"{metric} of {list_columns(names, 6)}" for metric, names in usual.items())
        yield f"metrics assumed, as usual for these tasks (--metric NAME if it is another): {shown}"
