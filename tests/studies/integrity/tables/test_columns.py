"""The role of each column is given by --map, recognised by its name, or by a pattern of names."""

from pathlib import Path

import pytest

from attnlab.errors import RequestError
from attnlab.studies.integrity import read_table
from attnlab.studies.integrity.options import read_hints
from attnlab.studies.integrity.tables.metrics import higher_is_better
from tests.studies.integrity.result_tables import (
    Recipe,
    judge_file,
    make_records,
    write_long,
    write_rows,
    write_text,
)


def test_columns_of_metrics(tmp_path: Path) -> None:
    read = read_table(
        write_text(
            tmp_path,
            "model,seed,eval_accuracy,eval_loss,lr,tokens\na,1,0.5,2.0,0.1,9\na,2,0.6,1.9,0.1,9\nb,1,0.7,1.8,0.2,9\n",
        )
    )
    assert read.metrics == ["eval_accuracy", "eval_loss"]
    assert read.arms == ["a", "b"]
    assert read.budgets["a", "", "1"] == {"tokens": "9"}
    assert "budgets from 'tokens'" in read.layout
    assert "not used: 'lr'" in read.layout


def test_arms_as_columns_and_seeds_as_rows(tmp_path: Path) -> None:
    read = read_table(write_text(tmp_path, "seed,vanilla,cosine\n1,70.1,71.2\n2,70.3,71.0\n"))
    assert (read.arms, read.metrics) == (["vanilla", "cosine"], ["value"])
    assert [(cell.arm, cell.seed, cell.value) for cell in read.cells][:2] == [
        ("vanilla", "1", 70.1),
        ("cosine", "1", 71.2),
    ]


def test_arms_and_metrics_as_columns(tmp_path: Path) -> None:
    read = read_table(
        write_text(tmp_path, "seed,acc_base,f1_base,acc_new,f1_new\n1,70,75,71,76\n2,70.5,75.5,71.5,76.5\n")
    )
    assert (read.arms, sorted(read.metrics)) == (["base", "new"], ["acc", "f1"])


def test_columns_made_otherwise_are_left_out(tmp_path: Path) -> None:
    text = "step,base_acc_1,base_acc_2,new_acc_1,new_acc_2,wall_time\n1,70,71,72,73,5\n"
    read = read_table(write_text(tmp_path, text))
    assert read.arms == ["base", "new"]
    assert "not used: 'wall_time'" in read.layout


def test_seeds_by_name_and_other_signs(tmp_path: Path) -> None:
    read = read_table(write_text(tmp_path, "base/acc/seed1;base/acc/seed2;new/acc/seed1;new/acc/seed2\n70;71;72;73\n"))
    assert {cell.seed for cell in read.cells} == {"seed1", "seed2"}
    assert read.layout[0] == "columns {arm}/{metric}/{seed}"


def test_a_mapping_wins_over_names(tmp_path: Path) -> None:
    text = "who,which,epoch,step,score\nx,1,3,9,0.5\ny,1,3,9,0.6\n"
    read = read_table(write_text(tmp_path, text), "arm=who,seed=which,step=epoch,value=score", "y")
    assert (read.baseline, read.arms, read.steps) == ("y", ["y", "x"], [3.0])


def test_a_pattern_for_columns(tmp_path: Path) -> None:
    read = read_table(
        write_text(tmp_path, "t,x1-70,x2-70,y1-70,y2-70\n1,1,2,3,4\n"), "columns={arm}{seed}-{group},step=t"
    )
    assert {(cell.arm, cell.seed, cell.group) for cell in read.cells} == {
        ("x", "1", "70"), ("x", "2", "70"), ("y", "1", "70"), ("y", "2", "70"),
    }  # fmt: skip


def test_a_small_n_counts_something_else(tmp_path: Path) -> None:
    records = [record | {"n": 6} for record in make_records(Recipe(metrics=("accuracy",), num_seeds=6))]
    path = write_long(tmp_path / "t.csv", records)
    assert judge_file(path).is_clean
    assert "not used: 'n'" in read_table(path).layout


def test_a_mapped_number_of_examples_must_be_one(tmp_path: Path) -> None:
    path = write_rows(tmp_path, "arm,seed,acc,size_of_set\n", ["a,1,0.5,100", "b,1,0.5,many"])
    with pytest.raises(Exception, match="'size_of_set' must hold a number of evaluation examples, not 'many'"):
        read_table(path, "examples=size_of_set")


def test_tasks_without_a_metric_are_read_beside_tasks_with_one(tmp_path: Path) -> None:
    header = "Model,CoLA (Mcc),SST-2,MRPC (F1),MNLI,FLOPs (G),Avg"
    path = write_rows(tmp_path, header, ["BERT,60.5,93.2,88.9,84.5,22,81.8", "Ours,59.9,93.9,88.2,85.3,21,81.8"])
    judgement = judge_file(path)
    assert judgement.table.groups == ["CoLA", "SST-2", "MRPC", "MNLI"]
    assert judgement.table.metrics == ["Mcc", "accuracy", "F1"]
    assert "average differs" not in [finding.check for finding in judgement.findings]


def test_rows_of_means_have_costs_and_verdicts_beside_them(tmp_path: Path) -> None:
    """As attnlab's own summary.csv: the mean is the score of each metric, and a verdict is no group."""
    text = (
        "size,arm,is_baseline,figure,mean,sd,seeds,low,high,method,verdict,seconds\n"
        "2L,base,True,loss,2.5,0.03,5,,,,,86\n2L,new,False,loss,3.7,0.01,5,1.1,1.3,t,WORSE,122\n"
        "2L,other,False,loss,2.6,0.02,5,0.0,0.2,t,WORSE,99\n"
    )
    read = read_table(write_text(tmp_path, text))
    assert read.metrics == ["loss"]
    assert [(cell.arm, cell.group, cell.value, cell.sd, cell.num_seeds) for cell in read.cells] == [
        ("base", "2L", 2.5, 0.03, 5), ("new", "2L", 3.7, 0.01, 5), ("other", "2L", 2.6, 0.02, 5),
    ]  # fmt: skip


SECTIONS = r"""\begin{tabular}{lc} Model & F1 \\ \midrule
\multicolumn{2}{l}{\textit{FIRST}} \\ BERT & 80.0 \\ FNet & 79.0 \\ \midrule
\multicolumn{2}{l}{\textit{SECOND}} \\ THIRD & 81.0 \\ Gate & 82.0 \\ \bottomrule \end{tabular}"""


def test_sections_that_sort_the_arms_are_no_groups(tmp_path: Path) -> None:
    text = SECTIONS.replace("FIRST", "Baselines").replace("SECOND", "Ours").replace("THIRD", "Ours-S")
    path = write_text(tmp_path, text)
    assert read_table(path).groups == [""]
    assert "not used: 'section'" in read_table(path).layout
    assert read_table(path, "group=section").groups == ["Baselines", "Ours"]
    (tmp_path / "again").mkdir()
    again = write_text(tmp_path / "again", SECTIONS.replace("THIRD", "BERT"))
    assert read_table(again).groups == ["FIRST", "SECOND"]
    assert read_table(again, "group=none").groups == [""]


def test_a_metric_is_one_name() -> None:
    with pytest.raises(RequestError, match=r"--metric takes the name of one metric.*not 'WikiText=perplexity'"):
        read_hints("WikiText=perplexity", None, None)


def test_rows_that_name_metrics_are_metrics(tmp_path: Path) -> None:
    text = "Dataset,Softmax,Ours\nWikiText-103 (ppl ↓),18.7,18.2\nPG-19 (ppl ↓),12.7,12.2\nLAMBADA (acc ↑),50.7,52.2\n"
    read = read_table(write_text(tmp_path, text))
    assert read.metrics == ["WikiText-103 (ppl ↓)", "PG-19 (ppl ↓)", "LAMBADA (acc ↑)"]
    assert read.arms == ["Softmax", "Ours"]
    assert [higher_is_better(metric) for metric in read.metrics] == [False, False, True]


def test_a_text_that_each_arm_has_one_of_is_no_group(tmp_path: Path) -> None:
    rows = [f"{arm},{seed},0.8{seed}{digit},{size}" for arm, digit, size in RUNS for seed in range(5)]
    read = read_table(write_text(tmp_path, "\n".join(["method,seed,test_acc,n_params", *rows])))
    assert read.groups == [""]
    assert "not used: 'n_params'" in read.layout


RUNS = (("base", 1, "110M"), ("ours", 2, "111M"))


def test_a_smallest_difference_in_points_of_fractions_is_refused(tmp_path: Path) -> None:
    rows = [f"{arm},{seed},0.8{seed}{digit}" for arm, digit, _ in RUNS for seed in range(5)]
    path = write_text(tmp_path, "\n".join(["method,seed,accuracy", *rows]))
    with pytest.raises(
        RequestError, match=r"accuracy is a fraction: 0\.5 would be 50 points\. For 0\.5 points give 0\.005"
    ):
        judge_file(path, smallest=0.5)
    judge_file(path, smallest=0.005)
