"""Usual names of columns: of the parts of a table, of budgets and settings, and of means and spreads."""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

from .metrics import recognise_metric, remove_direction, split_words
from .patterns import BASELINES, MEANS
from .rows import TextTable

COUNTS = ("n", "num", "number of", "count")
NAMES: Mapping[str, Sequence[str]] = {
    "arm": (
        "arm", "method", "methods", "variant", "mechanism", "system", "attention", "approach", "algorithm", "model",
        "models", "attn", "attention type", "attn type", "mixer", "config", "group name", "name",
    ),
    "seed": ("seed", "random seed", "run", "run id", "trial", "replicate", "repeat", "fold"),
    "step": ("step", "steps", "global step", "iteration", "iterations", "iter", "update", "epoch"),
    "metric": ("metric", "measure", "metric name", "figure"),
    "value": ("value", "score", "result", "metric value"),
    "group": (
        "group", "size", "model size", "task", "dataset", "data", "benchmark", "split", "layers", "scale", "section",
    ),
    "prediction": ("prediction", "predicted", "predictions", "pred", "output"),
    "label": ("label", "labels", "gold", "target", "truth", "reference", "expected"),
    "examples": (
        *(f"{count} {what}" for what in ("examples", "test", "eval", "dev", "val", "samples") for count in COUNTS),
        *(f"{what} {size}" for what in ("test", "eval", "dev", "val") for size in ("size", "examples", "samples")),
        "examples", "support", "n",
    ),
    "num_seeds": (
        *(f"{count} {what}" for what in ("seeds", "runs", "trials") for count in COUNTS), "seeds", "runs", "n",
    ),
}  # fmt: skip
"""The parts of a table, and the usual names of their columns, the least ambiguous first."""
BUDGETS = frozenset({
    "tokens", "tokensseen", "epochs",
    "budget", "flops", "batchsize", "batch", "maxsteps", "trainsteps", "numsteps", "updates",
    "trainsize", "numtokens", "trainexamples", "ntrain", "numtrain", "trainsamples", "numfewshot", "nshot", "shots",
})  # fmt: skip
"""Names of budgets, in which arms that are compared must not differ."""
SETTINGS = frozenset({
    "lr", "learningrate", "warmup", "warmupsteps", "weightdecay", "dropout", "params", "parameters", "numparams",
    "hours", "gpuhours", "time", "walltime", "runtime", "memory", "index", "id", "idx", "rank", "date", "timestamp",
})  # fmt: skip
"""Names of numbers that are neither scores nor budgets: arms may differ in learning rate and in run time."""
COSTS = frozenset({
    "flops", "gflops", "tflops", "mflops", "macs", "gmacs", "throughput", "latency", "speed", "speedup", "params",
    "parameters", "memory", "mem", "vram", "time", "hours", "runtime", "tokens", "epochs", "steps", "seconds", "fps",
})  # fmt: skip
"""Words for what a model costs, which is no score of a task."""
PER_SECOND = re.compile(r"/\s*s(?:ec|econd)?\b", re.IGNORECASE)
P_VALUES = frozenset({
    "p", "pval", "pvals", "pvalue", "pvalues", "padj", "adjp", "adjustedp", "correctedp", "sig", "significance",
    "significant",
})  # fmt: skip
"""Names of p-values, each in one word; they say how sure a difference is, and are no scores."""
TASKS = frozenset({
    "cola", "sst2", "mrpc", "stsb", "qqp", "mnli", "mnlim", "mnlimm", "qnli", "rte", "wnli", "boolq", "cb", "copa",
    "multirc", "record", "wic", "wsc", "squad", "squadv1", "squadv2", "piqa", "hellaswag", "winogrande", "arce", "arcc",
    "arceasy", "arcchallenge", "lambada", "openbookqa", "obqa", "sciq", "mmlu", "gsm8k", "triviaqa", "race", "imdb",
})  # fmt: skip
"""Usual tasks, each in one word."""
IN_CONFIG = ("arm", "seed")
"""Parts whose columns may have a prefix, as in the configuration of a tracker: model.attention, params.seed."""
GENERAL = ("config", "group name", "name", "run", "n")
"""Names that say nothing of an arm or a seed behind a prefix, as in optimizer.name."""
RUN_NAMES = frozenset({"name", "runname", "displayname", "runid", "id", "file", "path"})
SDS = ("std", "sd", "stdev", "stddev")
ERRORS = ("stderr", "sem", "se")
RANGES = ("min", "max", "median", "ci", "ci95", "lower", "upper", "var", "variance")
OVER = frozenset({
    "score", "scores", "over", "of", "on", "in", "the", "all", "across", "task", "tasks", "dataset", "datasets",
    "benchmark", "benchmarks", "overall", "total", "macro", "micro", "weighted", "unweighted", "seeds", "runs",
})  # fmt: skip
"""Words beside `Avg` that do not say what it is of, as in `Average score` and `avg over 8 tasks`."""
OURS = frozenset({*BASELINES, "ours", "proposed"})


def find_columns_for(rows: TextTable, part: str) -> list[str]:
    """Return the columns with a usual name of a part, the least ambiguous first; those with a prefix come last."""
    columns = {" ".join(split_words(name)): name for name in rows.header}
    found = [columns[name] for name in NAMES[part] if name in columns]
    if part in IN_CONFIG:
        # A setting that is the same in all rows tells no arms apart.
        behind = {
            " ".join(split_words(re.split(r"[./]", name)[-1])): name
            for name in rows.header if re.search(r"[./]", name) and len({*rows.column(name)}) > 1
        }  # fmt: skip
        found += [behind[name] for name in NAMES[part] if name in behind and name not in GENERAL]
    return list(dict.fromkeys(found))


def split_summary(name: str) -> tuple[list[str], list[str]]:
    """Return the words for a mean in a name, and those that say of what: `GLUE` in `Avg. score (GLUE)`."""
    words = split_words(remove_direction(name))
    means = [word for word in words if word in MEANS]
    return means, [word for word in words if word not in (*MEANS, *OVER) and not word.isdigit()]


def is_aggregate(name: str) -> bool:
    """Tell whether a column holds means or spreads of other columns by its name, such as `Avg.` or `std`."""
    words = split_words(remove_direction(name))
    means, subject = split_summary(name)
    is_mean = bool(means) and not subject
    return is_mean or (bool(words) and all(word in (*MEANS, *SDS, *ERRORS) for word in words))


def drop_aggregates(names: Sequence[str], averages: Sequence[str] = ()) -> list[str]:
    """Return the names without means and spreads of others; a single score, or `mean` beside `max`, is not one.

    averages: columns that are known to be means of others, whatever their names.
    """
    scores = [name for name in names if name not in averages and not is_aggregate(name)]
    return scores if len(scores) > 1 else list(names)


def is_setting(name: str) -> bool:
    """Tell whether a column is a setting or a cost by its name, such as `lr` or `Params (M)`."""
    words = split_words(name)
    return "".join(words) in SETTINGS or any(word in SETTINGS for word in words[:1]) or is_p_value(name)


def is_p_value(name: str) -> bool:
    """Tell whether a column holds p-values by its name, such as `p`, `p-value (Holm)` or `sig.`."""
    words = split_words(name)
    is_pair = any(pair in P_VALUES for pair in map("".join, pairwise(words)))
    return "".join(words) in P_VALUES or is_pair or any(word in P_VALUES for word in words if len(word) > 3)


def names_task(name: str) -> bool:
    """Tell whether a column is named by a usual task, such as `SST-2`."""
    return "".join(split_words(remove_direction(name))) in TASKS


def is_cost(name: str) -> bool:
    """Tell whether a column is named by a cost, such as `FLOPs (G)`, and by no metric of quality."""
    is_quality = recognise_metric(name) not in ("", *COSTS)
    return not is_quality and (any(word in COSTS for word in split_words(name)) or bool(PER_SECOND.search(name)))
