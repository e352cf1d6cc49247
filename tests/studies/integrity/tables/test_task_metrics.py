"""A task in the name of a metric becomes the group, and the metric is that of its name or the usual one of the task."""

from pathlib import Path

import pytest

from attnlab.studies.integrity import IntegrityKind, TableHints, read_table
from attnlab.studies.integrity.tables.task_metrics import TaskMetric, split_task
from tests.studies.integrity.result_tables import judge_file, write_text

LATEX = (
    r"\begin{tabular}{lcccc} & \multicolumn{2}{c}{SQuAD v1.1} & \multicolumn{2}{c}{NewsQA} \\ "
    r"Method & EM & F1 & EM & F1 \\ \midrule base & 80.8 & 88.5 & 49.5 & 63.7 \\ ours & 81.9 & 80.4 & 49.6 & 63.9 \\ "
    r"\end{tabular}"
)
ROWS = "base,80.8,88.5,49.5,63.7\nours,81.9,80.4,49.6,63.9\n"
LONG = "".join(
    f"{arm},1,{name},{value}\n"
    for arm, *values in (row.split(",") for row in ROWS.split())
    for name, value in zip(("SQuAD EM", "SQuAD F1", "NewsQA EM", "NewsQA F1"), values, strict=True)
)
GRIDS = {
    "t.tex": LATEX,
    "flat.csv": f"method,SQuAD EM,SQuAD F1,NewsQA EM,NewsQA F1\n{ROWS}",
    "names.csv": f"method,squad_em,squad_f1,newsqa_em,newsqa_f1\n{ROWS}",
    "own.csv": f"method,A EM,A F1,B EM,B F1\n{ROWS}",
    "first.csv": f"method,EM (A),F1 (A),EM (B),F1 (B)\n{ROWS}",
    "two.csv": f"method,SQuAD,,NewsQA,\n,EM,F1,EM,F1\n{ROWS}",
    "long.csv": f"method,seed,metric,value\n{LONG}",
    "seeds.csv": "method,A EM s1,A EM s2,A F1 s1,A F1 s2,B EM s1,B EM s2,B F1 s1,B F1 s2\n"
    "base,80.8,80.7,88.5,88.4,49.5,49.4,63.7,63.6\nours,81.9,81.8,80.4,88.9,49.6,49.7,63.9,63.8\n",
}


@pytest.mark.parametrize("file", GRIDS)
def test_f1_below_exact_match_is_found_with_several_tasks(file: str, tmp_path: Path) -> None:
    (tmp_path / file).write_text(GRIDS[file], encoding="utf-8")
    judgement = judge_file(str(tmp_path / file))
    assert [metric.lower() for metric in judgement.table.metrics] == ["em", "f1"]
    assert len(judgement.table.groups) == 2
    assert any(word.startswith("metrics are those of tasks: ") for word in judgement.table.layout)
    (finding,) = [one for one in judgement.faults if one.kind == IntegrityKind.IMPOSSIBLE_VALUES]
    assert "; 80.4 (" in finding.sentence
    assert "is below 81.9" in finding.sentence
    again = read_table(str(tmp_path / file), judgement.table.mapping)
    assert again.cells == judgement.table.cells


@pytest.mark.parametrize(
    ("name", "task", "metric"),
    [
        ("SQuAD v1.1 F1", "SQuAD v1.1", "F1"),
        ("CoLA (Mcc)", "CoLA", "Mcc"),
        ("WikiText (ppl ↓)", "WikiText", "ppl"),
        ("acc MNLI", "MNLI", "acc"),
        ("MNLI test acc", "MNLI", "test acc"),
        ("PIQA acc_norm", "PIQA", "acc_norm"),
        ("NewsQA exact match", "NewsQA", "exact match"),
        ("f1/squad", "squad", "f1"),
        *((name, "", "") for name in ("eval/accuracy", "test_f1", "top-5 accuracy", "macro F1", "ROUGE-L", "BLEU-4")),
        *((name, "", "") for name in ("accuracy", "SST-2", "bits per byte", "exact match", "Avg. acc", "log loss")),
    ],
)
def test_names_of_tasks_and_metrics(name: str, task: str, metric: str) -> None:
    assert split_task(name) == (TaskMetric(task, metric) if task else None)


def test_usual_tasks_have_their_usual_metrics(tmp_path: Path) -> None:
    rows = "BERT,92.7,58.1,66.2,88.0,88.6\nOurs,94.1,61.9,71.0,88.9,89.8\n"
    path = write_text(tmp_path, f"Model,SST-2,CoLA,RTE,MRPC,STS-B\n{rows}")
    table = read_table(path)
    assert table.groups == ["SST-2", "CoLA", "RTE", "MRPC", "STS-B"]
    assert table.metrics == ["accuracy", "Matthews", "accuracy or F1", "Pearson or Spearman"]
    assert any("accuracy of 'SST-2', 'RTE'; Matthews of 'CoLA'" in word for word in table.layout)
    groups = write_text(tmp_path, f"Model,Single sentence,,Pairs,,\n,SST-2,CoLA,RTE,MRPC,STS-B\n{rows}")
    assert read_table(groups).groups[:2] == ["Single sentence SST-2", "Single sentence CoLA"]
    assert read_table(groups).metrics == table.metrics
    impossible = write_text(tmp_path, f"Model,SST-2,CoLA,RTE,MRPC,STS-B\n{rows.replace('94.1', '194.1')}B,9,9,9,9,9\n")
    assert "194.1" in judge_file(impossible).faults[0].sentence


def test_other_metrics_of_usual_tasks(tmp_path: Path) -> None:
    given = write_text(tmp_path, "Model,SST-2,CoLA (Mcc)\na,7.1,58.1\nb,6.9,61.9\n")
    table = read_table(given, hints=TableHints(metric="error"))
    assert table.metrics == ["error", "Mcc"]
    assert not any("not used" in word for word in table.layout)
    seconds = write_text(tmp_path, "Model,SST-2,RTE\na,120,258\nb,140,219\n")
    assert read_table(seconds).metrics == ["SST-2", "RTE"]
    errors = write_text(tmp_path, "Model,SST-2 ↓,RTE ↓\na,7,30\nb,6,29\n")
    assert read_table(errors).metrics == ["SST-2 ↓", "RTE ↓"]
    words = write_text(tmp_path, "model,race,wins\na,3,5\nb,4,6\n")
    assert read_table(words).metrics == ["race", "wins"]


def test_metrics_of_one_task_stay_metrics(tmp_path: Path) -> None:
    for header in ("clean acc,robust acc,BLEU", "eval/loss,eval/acc,train/loss", "SQuAD EM,SQuAD F1,SQuAD EM loss"):
        table = read_table(write_text(tmp_path, f"model,{header}\na,1.5,2.5,3.5\nb,2.5,3.5,4.5\n"))
        assert len(table.metrics) == 3
