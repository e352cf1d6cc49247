"""Results of EleutherAI's lm-evaluation-harness: tasks with metrics such as `acc,none` and their standard errors."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..metrics import add_direction
from ..rows import TextTable, make_table
from ..run_names import split_run_names
from .blocks import Rows, fill_first_column

LM_EVAL = "lm-eval results"
HEADER = ("model", "seed", "task", "metric", "value", "n_samples", "num_fewshot")
PRINTED = ("model", "task", "metric", "value", "num_fewshot")
IN_PRINTED = frozenset({"version", "metric", "value", "stderr"})
"""Columns of every table that lm-eval prints; further ones depend on its version."""
MODEL = re.compile(r"\bpretrained=([^,)\s]+)")
"""The model in the line that lm-eval prints above its table."""
STDERR = "are over examples, so they are neither metrics nor a spread over seeds"
NOT_SCORES = ("alias", "samples", "name", "sample_len")


def is_lm_eval(content: Any) -> bool:
    """Tell whether a JSON file has the form of lm-eval's results."""
    results = content.get("results") if isinstance(content, Mapping) else None
    if not isinstance(results, Mapping) or not results or not all(isinstance(it, Mapping) for it in results.values()):
        return False
    return any(key in content for key in ("config", "configs", "versions", "n-shot", "n-samples", "git_hash"))


def read_lm_eval(path: str, content: Mapping[str, Any]) -> TextTable:
    """Read lm-eval's results as one row for each task and metric; standard errors are not scores."""
    config = _get_mapping(content, "config")
    model = _name_model(content, config)
    seed = config.get("random_seed")
    rows: list[tuple[int | str, list[str]]] = []
    for task, figures in content["results"].items():
        for name, value in figures.items():
            metric, _, kind = name.partition(",")
            is_score = isinstance(value, int | float) and not isinstance(value, bool)
            if not is_score or metric in NOT_SCORES or metric.endswith("_stderr"):
                continue
            shown = metric if kind in ("", "none") else f"{metric} ({kind})"
            samples = _get_mapping(_get_mapping(content, "n-samples"), task).get("effective")
            shots = _get_mapping(content, "n-shot").get(task)
            cells = [model, seed, task, shown, value, samples, shots]
            rows.append((f"{shown} of {task}", ["" if cell is None else str(cell) for cell in cells]))
    table = make_table(path, HEADER, rows, LM_EVAL)
    return replace(table, remarks=(f"standard errors (…_stderr) {STDERR}",))


def is_printed_lm_eval(header: Sequence[str]) -> bool:
    """Tell whether a table is one that lm-eval prints, with Tasks, Version, Filter, n-shot, Metric, Value, Stderr."""
    return {*map(str.lower, header)} >= IN_PRINTED and header[0].lower() in ("task", "tasks", "group", "groups")


def read_printed_lm_eval(path: str, header: Sequence[str], rows: Rows, caption: str) -> TextTable:
    """Read the table that lm-eval prints as its JSON is read; the file names the model if no line above does."""
    names = [name.lower() for name in header]
    model = found[1] if (found := MODEL.search(caption)) else Path(path).stem
    read: list[tuple[int | str, list[str]]] = []
    for line, row in fill_first_column(rows):
        cells = dict(zip(names, row, strict=False))
        kind, arrow = cells.get("filter", ""), next((cell for cell in row if cell in ("↑", "↓")), "")
        metric = add_direction(cells["metric"], arrow)
        shown = metric if kind in ("", "none") else f"{metric} ({kind})"
        read.append((line, [model, row[0].lstrip("- "), shown, cells["value"], cells.get("n-shot", "")]))
    remarks = (f"as lm-eval prints it: standard errors {STDERR}", *(() if found else ("model from the file's name",)))
    return replace(make_table(path, PRINTED, read, LM_EVAL), remarks=remarks)


def name_lm_eval_seeds(table: TextTable) -> TextTable:
    """Take arm and seed from the names of the models; lm-eval's own seed is not that of a training run."""
    names = table.column("model")
    pairs = split_run_names(names)
    if pairs:
        added = {"model": [pairs[name][0] for name in names], "seed": [pairs[name][1] for name in names]}
        remark = f"model and seed from names such as '{names[0]}'"
        return replace(table.add_columns(added), remarks=(*table.remarks, remark))
    if "seed" not in table.header:
        return table
    remark = (
        "the seed is lm-eval's random_seed, which draws examples for the prompt; it is not the seed of a training run"
    )
    return replace(table, remarks=(*table.remarks, remark))


def _get_mapping(content: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = content.get(key)
    return value if isinstance(value, Mapping) else {}


def _name_model(content: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    name, arguments = content.get("model_name"), config.get("model_args")
    if isinstance(arguments, str):
        arguments = dict(pair.split("=", 1) for pair in arguments.split(",") if "=" in pair)
    arguments = arguments if isinstance(arguments, Mapping) else {}
    parts = [str(arguments[key]) for key in ("pretrained", "peft") if arguments.get(key)]
    return str(name) if name else "+".join(parts) or str(config.get("model") or "model")
