"""Results of EleutherAI's lm-evaluation-harness: tasks with metrics such as `acc,none` and their standard errors."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..rows import TextTable, make_table
from ..run_names import split_run_names

LM_EVAL = "lm-eval results"
HEADER = ("model", "seed", "task", "metric", "value", "n_samples", "num_fewshot")
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
    remark = "standard errors (…_stderr) are over examples, so they are neither metrics nor a spread over seeds"
    return replace(table, remarks=(remark,))


def name_lm_eval_seeds(table: TextTable) -> TextTable:
    """Take arm and seed from the names of the models; lm-eval's own seed is not that of a training run."""
    names = table.column("model")
    pairs = split_run_names(names)
    if pairs:
        added = {"model": [pairs[name][0] for name in names], "seed": [pairs[name][1] for name in names]}
        remark = f"model and seed from names such as '{names[0]}'"
        return replace(table.add_columns(added), remarks=(*table.remarks, remark))
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
