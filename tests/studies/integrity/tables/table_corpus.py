"""Tables as they occur in repositories and papers, each with how it must be read."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

ACCURACIES = {"base": (82.0, 81.6, 82.3, 81.9, 82.1), "new": (83.1, 82.7, 83.4, 82.8, 83.0)}


@dataclass(frozen=True)
class SampleTable:
    """A file, and how it must be read. words: what the description of the reading must contain."""

    file: str
    text: str
    arms: Sequence[str]
    metrics: Sequence[str]
    num_seeds: int = 5
    groups: Sequence[str] = ("",)
    words: Sequence[str] = ()
    num_values: int = 10
    files: dict[str, str] = field(default_factory=dict)

    def write(self, folder: Path) -> list[str]:
        """Write the file, or several, into a folder; return their paths."""
        files = self.files or {self.file: self.text}
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        return [str(folder / name) for name in files]


def write_columns(header: str, scale: float = 1.0, sign: str = "") -> str:
    """Write a table with one row for each arm."""
    rows = [
        f"{arm}," + ",".join(f"{score / scale:.4g}{sign}" for score in scores) for arm, scores in ACCURACIES.items()
    ]
    return "\n".join([header, *rows])


def write_long(header: str, row: str) -> str:
    """Write a table with one row for each run; row: a format of arm, seed and score."""
    runs = [(arm, seed, score) for arm, scores in ACCURACIES.items() for seed, score in enumerate(scores)]
    return "\n".join([header, *(row.format(arm=arm, seed=seed, score=score) for arm, seed, score in runs)])


def write_lm_eval(model: str, accuracy: float) -> str:
    figures = {"alias": "piqa", "acc,none": accuracy, "acc_stderr,none": 0.011}
    return json.dumps({
        "results": {"piqa": figures}, "n-samples": {"piqa": {"effective": 1000}}, "n-shot": {"piqa": 0},
        "config": {"model": "hf", "model_args": f"pretrained={model}", "random_seed": 0}, "model_name": model,
    })  # fmt: skip


def write_wandb_chart() -> str:
    names = [f"{arm}-seed{seed}" for arm in ACCURACIES for seed in range(5)]
    header = ["Step", *(f"{name} - eval/acc{end}" for name in names for end in ("", "__MIN", "__MAX"))]
    rows = []
    for step, share in ((100, 0.9), (200, 1.0)):
        scores = [share * score for scores in ACCURACIES.values() for score in scores]
        rows.append([str(step), *(f"{score:.2f}" for score in scores for _ in range(3))])
    return "\n".join(",".join(f'"{cell}"' for cell in row) for row in [header, *rows])


LATEX = r"""
\begin{table}[t]
\caption{Accuracy on GLUE, mean and standard deviation over five seeds.} % not 7 seeds
\begin{tabular}{@{}lrcc@{}}
\toprule
Method & Params & MNLI & SST-2 \\ \midrule
Transformer~\citep{vaswani} & 110M & $84.3_{\pm 0.2}$ & 92.7 {\scriptsize $\pm$ 0.4} \\
\textbf{Ours} & 110M & $\mathbf{85.1}_{\pm 0.2}$ & \textbf{93.5}$_{0.3}$ \\
\bottomrule
\end{tabular}
\end{table}
"""
LATEX_TWO_LEVELS = r"""
\begin{tabular}{l|cc|c} \hline
\multirow{2}{*}{Model} & \multicolumn{2}{c|}{SQuAD} & WikiText \\ \cline{2-4}
 & EM & F1 & PPL $\downarrow$ \\ \hline
\multicolumn{4}{l}{\emph{base size}} \\
Softmax & 80.8 & 88.5 & 24.3 \\
Ours & 81.4 & 89.0 & -- \\ \hline
\multicolumn{4}{l}{\emph{large size}} \\
Softmax & 84.8 & 90.5 & 20.3 \\
Ours & 85.4 & 91.0 & 20.1 \\ \hline
\end{tabular}
"""
MARKDOWN = """
Accuracy, 5 runs each, ± standard error.

| Model | LAMBADA | PIQA |
|:--|--:|:-:|
| GPT-2 | 45.9 ± 0.3 | 62.1 ± 0.2 |
| **+ ours** | **47.2 ± 0.4** | 62.0 ± 0.2 |
"""

CORPUS = (
    SampleTable(
        "seeds.csv",
        write_columns("model,s1,s2,s3,s4,s5"),
        ["base", "new"],
        ["value"],
        words=["seeds in columns s1…s5", "metric not named"],
    ),
    SampleTable(
        "seed_accuracy.csv",
        write_columns("Method,seed=0,seed=1,seed=2,seed=3,seed=4", 100),
        ["base", "new"],
        ["accuracy"],
        words=["metric accuracy (from the file's name)"],
    ),
    SampleTable(
        "runs.csv",
        write_columns("model,acc_run_1,acc_run_2,acc_run_3,acc_run_4,acc_run_5", sign="%"),
        ["base", "new"],
        ["acc"],
        words=["seeds in columns acc_run_1…acc_run_5"],
    ),
    SampleTable("numbers.csv", write_columns("attention,1,2,3,4,5"), ["base", "new"], ["value"]),
    SampleTable("unnamed.csv", write_columns(",Seed 1,Seed 2,Seed 3,Seed 4,Seed 5"), ["base", "new"], ["value"]),
    SampleTable(
        "arms.csv",
        "seed,vanilla,ours (full)\n" + "\n".join(f"{n},{80 + n / 7:.2f},{81 + n / 9:.2f}" for n in range(5)),
        ["vanilla", "ours (full)"],
        ["value"],
        words=["arms in columns"],
    ),
    SampleTable(
        "tasks.csv",
        "dataset,baseline,new\nimdb,0.881,0.890\nsst2,0.91,0.92\n",
        ["baseline", "new"],
        ["value"],
        1,
        ["imdb", "sst2"],
        num_values=4,
    ),
    SampleTable(
        "n_test.csv",
        write_long("arm,seed,accuracy,accuracy_stderr,n_test", "{arm},{seed},{score}%,0.3,1000"),
        ["base", "new"],
        ["accuracy"],
        words=["not metrics: 'accuracy_stderr'", "evaluation examples from 'n_test'"],
    ),
    SampleTable(
        "lm_eval.csv",
        write_long('model,seed,"acc,none","acc_stderr,none"', "{arm},{seed},{score},0.01"),
        ["base", "new"],
        ["acc,none"],
        words=["not metrics: 'acc_stderr,none'"],
    ),
    SampleTable(
        "mean.csv",
        "method,acc_mean,acc_std,n_seeds\nbaseline,82.1,0.4,5\nours,83.0,0.4,5\n",
        ["baseline", "ours"],
        ["acc"],
        1,
        words=["SDs from 'acc_std'", "number of seeds from 'n_seeds'"],
        num_values=2,
    ),
    SampleTable(
        "cells.csv",
        "method;acc\nbaseline;82,1 (0,4)\nours;83,0 (0,4)\n",
        ["baseline", "ours"],
        ["acc"],
        1,
        words=["means with ± SD (--spread se or ci if it is not)"],
        num_values=2,
    ),
    SampleTable(
        "table.tex",
        LATEX,
        ["Transformer", "Ours"],
        ["accuracy"],
        1,
        ["MNLI", "SST-2"],
        num_values=4,
        words=["a LaTeX table", "means with ± SD (the caption)", "5 seeds each (the caption)", "not used: 'Params'"],
    ),
    SampleTable(
        "two.tex",
        LATEX_TWO_LEVELS,
        ["Softmax", "Ours"],
        ["SQuAD EM", "SQuAD F1", "WikiText PPL ↓"],
        1,
        ["base size", "large size"],
        num_values=11,
    ),
    SampleTable(
        "README.md",
        MARKDOWN,
        ["GPT-2", "+ ours"],
        ["accuracy"],
        1,
        ["LAMBADA", "PIQA"],
        num_values=4,
        words=["means with ± standard error (the caption)", "5 seeds each (the caption)"],
    ),
    SampleTable(
        "wandb.csv",
        write_wandb_chart(),
        ["base", "new"],
        ["eval/acc"],
        num_values=20,
        words=["a W&B chart", "arm and seed from the names of the runs"],
    ),
    SampleTable(
        "wandb_runs.csv",
        write_long(
            "Name,State,User,Created,attention,lr,seed,eval/acc,_step",
            "happy-sun-{seed},finished,me,2026,{arm},0.001,{seed},{score},900",
        ),
        ["base", "new"],
        ["eval/acc"],
        words=["a runs table of W&B or MLflow"],
    ),
    SampleTable(
        "mlflow.csv",
        write_long(
            "run_id,status,start_time,metrics.acc,params.seed,params.model,tags.mlflow.runName",
            "a{seed}{arm},FINISHED,2026,{score},{seed},{arm},run{seed}",
        ),
        ["base", "new"],
        ["acc"],
        words=["an MLflow export"],
    ),
    SampleTable(
        "records.json",
        json.dumps(
            [
                {"arm": arm, "seed": n, "eval": {"acc": score}}
                for arm, scores in ACCURACIES.items()
                for n, score in enumerate(scores)
            ]
        ),
        ["base", "new"],
        ["eval.acc"],
    ),
    SampleTable("lists.json", json.dumps(ACCURACIES), ["base", "new"], ["value"]),
    SampleTable(
        "lines.jsonl",
        "\n".join(json.dumps({"method": arm, "acc": score}) for arm, scores in ACCURACIES.items() for score in scores),
        ["base", "new"],
        ["acc"],
    ),
    SampleTable(
        "",
        "",
        ["out/base", "out/new"],
        ["acc"],
        5,
        ["piqa"],
        words=["lm-eval results", "_stderr"],
        files={
            f"{arm}{seed}/results_1.json": write_lm_eval(f"out/{arm}-seed{seed}", score / 100)
            for arm, scores in ACCURACIES.items()
            for seed, score in enumerate(scores)
        },
    ),
    SampleTable(
        "",
        "",
        ["base", "new"],
        ["eval_acc"],
        5,
        words=["arm and seed from the names of the files"],
        files={
            f"{arm}_seed{seed}/all_results.json": json.dumps({"eval_acc": score, "epoch": 3.0})
            for arm, scores in ACCURACIES.items()
            for seed, score in enumerate(scores)
        },
    ),
)
