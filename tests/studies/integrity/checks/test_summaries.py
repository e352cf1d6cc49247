"""Reported means and SDs that differ from the recorded values are found."""

from pathlib import Path

import pytest

from attnlab.studies.integrity import Judgement
from tests.studies.integrity.result_tables import (
    WRITERS,
    Recipe,
    Record,
    Write,
    judge_file,
    list_faults,
    make_records,
    select,
    write_long,
    write_rows,
)


def write_summary(path: Path, records: list[Record], shift: float = 0.0, is_wide: bool = False) -> str:
    lines: list[str] = []
    figures = {}
    for arm in ("baseline", "cosine"):
        for metric in ("em", "f1"):
            values = [record["value"] for record in select(records, arm=arm, metric=metric)]
            mean = sum(values) / len(values)
            sd = (sum((value - mean) ** 2 for value in values) / (len(values) - 1)) ** 0.5
            figures[arm, metric] = f"{mean + shift * (arm == 'cosine'):.2f}", f"{sd:.2f}"
    if is_wide:
        names = [f"{arm}_small_{metric}_{what}" for arm, metric in figures for what in ("mean", "std")]
        lines = [",".join(names), ",".join(text for pair in figures.values() for text in pair)]
    else:
        lines = [
            "arm,size,metric,mean,sd",
            *(f"{arm},small,{metric},{mean},{sd}" for (arm, metric), (mean, sd) in figures.items()),
        ]
    path.write_text("\n".join(lines), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("is_wide", [True, False])
@pytest.mark.parametrize("write", WRITERS)
def test_a_summary_that_is_not_the_tables(tmp_path: Path, write: Write, is_wide: bool) -> None:
    records = make_records(Recipe())
    path = write(tmp_path / "t.csv", records)
    right = write_summary(tmp_path / "right.csv", records, is_wide=is_wide)
    (finding,) = judge_file(path, summary=right).findings
    assert not finding.is_fault
    assert finding.sentence.startswith("all 8 figures agree with the recorded values, of 8 in ")
    wrong = write_summary(tmp_path / "wrong.csv", records, 0.8, is_wide)
    found = judge_file(path, summary=wrong)
    assert list_faults(found) == ["summary differs"]
    assert found.findings[0].sentence.startswith(f"2 of 8 figures of {wrong} differ from the recorded values: cosine")


@pytest.mark.parametrize("factor", [100, 1])
def test_a_summary_may_have_another_unit(tmp_path: Path, factor: int) -> None:
    records = make_records(Recipe(metrics=("accuracy",), num_seeds=6, percent=False))
    lines = ["arm,metric,mean"]
    for arm in ("baseline", "cosine"):
        values = [record["value"] for record in records if record["arm"] == arm]
        lines.append(f"{arm},accuracy,{factor * sum(values) / 6:.4f}")
    summary = tmp_path / "summary.csv"
    summary.write_text("\n".join(lines), encoding="utf-8")
    records = [{name: value for name, value in record.items() if name != "size"} for record in records]
    found = judge_file(write_long(tmp_path / "t.csv", records), summary=str(summary))
    assert found.is_clean
    assert [finding.check for finding in found.findings] == ["summary agrees", *["summary differs"] * (factor > 1)]


@pytest.mark.parametrize("header", ["arm,accuracy,sd", "arm,accuracy_mean,accuracy_sd", "arm,mean,sd"])
@pytest.mark.parametrize("mean", ["81.50", "81.60"])
def test_a_metric_beside_its_sd_is_a_mean(header: str, mean: str, tmp_path: Path) -> None:
    table, summary = tmp_path / "seeds.csv", tmp_path / "summary.csv"
    table.write_text("arm,seed,accuracy\nbase,1,81.0\nbase,2,82.0\nours,1,83.0\nours,2,84.0\n", encoding="utf-8")
    summary.write_text(f"{header}\nbase,{mean},0.71\nours,83.50,0.71\n", encoding="utf-8")
    findings = [one for one in judge_file(str(table), summary=str(summary)).findings if "summary" in one.check]
    sentences = " ".join(one.sentence for one in findings)
    assert ("all 4 figures agree" in sentences) == (mean == "81.50"), sentences
    assert ("1 of 4 figures" in sentences) == (mean != "81.50"), sentences


SEEDS = ["softmax,66.06,64.98,67.15,65.70,66.43", "Ours,68.59,67.51,68.95,67.87,69.31"]
TEX = (
    r"\begin{tabular}{lc} Method & Acc \\ \midrule softmax & 66.1 $\pm$ 0.8 \\ \textbf{ours} & 68.4(7) \\ \end{tabular}"
)


@pytest.mark.parametrize(
    ("file", "text"), [("s.tex", TEX), ("s.csv", "method,accuracy\nsoftmax,66.1 ± 0.8\nours,68.4 ± 0.7\n")]
)
def test_a_summary_of_cells_with_a_spread(tmp_path: Path, file: str, text: str) -> None:
    path = Path(write_rows(tmp_path, "method,s1,s2,s3,s4,s5", SEEDS)).rename(tmp_path / "rte_acc.csv")
    (tmp_path / file).write_text(text, encoding="utf-8")
    found = judge_file(str(path), summary=str(tmp_path / file))
    assert "all 4 figures agree" in found.findings[0].sentence
    (tmp_path / file).write_text(text.replace("68.4", "68.9"), encoding="utf-8")
    (fault,) = judge_file(str(path), summary=str(tmp_path / file)).faults
    assert "the mean is given as 68.9" in fault.sentence
    assert "the recorded values have 68.446" in fault.sentence


def test_a_summary_of_tasks_is_matched_by_name(tmp_path: Path) -> None:
    rows = [f"{arm},{task},{seed},{base + seed / 2}" for arm in ("a", "b") for task, base in (("rte", 66), ("mrpc", 84))
            for seed in range(5)]  # fmt: skip
    path = write_rows(tmp_path, "arm,task,seed,accuracy", rows)
    summary = tmp_path / "s.md"
    summary.write_text("| M | RTE | MRPC | CoLA |\n|--|--|--|--|\n| a | 67.0 ± 0.8 | 85.0 ± 0.8 | 50 ± 1 |\n"
                       "| b | 67.0 ± 0.8 | 85.9 ± 0.8 | 51 ± 1 |\n", encoding="utf-8")  # fmt: skip
    found = judge_file(path, summary=str(summary))
    sentences = [finding.sentence for finding in found.findings if finding.check == "summary differs"]
    assert "1 of 8 figures" in sentences[0]
    assert "4 of 12 figures of" in sentences[1]


def test_a_summary_of_columns_that_may_be_any_group_is_not_checked(tmp_path: Path) -> None:
    path = Path(write_rows(tmp_path, "method,s1,s2,s3,s4,s5", SEEDS)).rename(tmp_path / "rte_acc.csv")
    summary = tmp_path / "s.csv"
    summary.write_text("method,x acc,y acc\nsoftmax,1 ± 1,2 ± 1\nours,1 ± 1,2 ± 1\n", encoding="utf-8")
    found = judge_file(str(path), summary=str(summary))
    assert not found.faults
    assert "have no recorded values" in found.findings[0].sentence


@pytest.mark.parametrize(("mean", "is_wrong"), [("68.45", False), ("68.4", False), ("68.9", True)])
@pytest.mark.parametrize("stem", ["", "acc_"])
def test_a_mean_beside_its_seeds(tmp_path: Path, mean: str, is_wrong: bool, stem: str) -> None:
    header = ",".join(["method", *(f"{stem}s{seed}" for seed in range(1, 6)), f"{stem}mean", f"{stem}std"])
    found = judge_file(write_rows(tmp_path, header, [f"{SEEDS[0]},66.06,0.81", f"{SEEDS[1]},{mean},0.75"]))
    assert list_faults(found) == ["summary differs"] * is_wrong
    assert {cell.seed for cell in found.table.cells} == {"1", "2", "3", "4", "5"}
    assert any("the columns" in finding.sentence for finding in found.findings)


@pytest.mark.parametrize(("sd", "is_population"), [("1.581", False), ("1.414", True)])
def test_an_sd_that_is_divided_by_n_is_named(tmp_path: Path, sd: str, is_population: bool) -> None:
    rows = [f"{arm},{seed},{80 + seed}" for arm in ("base", "ours") for seed in range(1, 6)]
    summary = tmp_path / "summary.csv"
    summary.write_text(f"arm,accuracy_mean,accuracy_sd\nbase,83.0,{sd}\nours,83.0,1.581\n", encoding="utf-8")
    found = judge_file(write_rows(tmp_path, "arm,seed,accuracy", rows), summary=str(summary))
    sentences = [finding.sentence for finding in found.findings]
    assert "summary differs" not in list_faults(found)
    assert any("1 SD agrees only as a population SD, divided by n" in text for text in sentences) == is_population
    assert any("all 4 figures agree" in text for text in sentences)


LONG = "arm,seed,task,score\n" + "".join(
    f"{arm},{seed},{task},{base + seed / 2}\n"
    for arm, task, base in [("a", "rte", 60), ("a", "cola", 70), ("b", "rte", 61), ("b", "cola", 71)]
    for seed in range(5)
)


@pytest.mark.parametrize(
    ("summary", "num_checked", "unchecked"),
    [
        ("arm,rte,cola\na,61.0 ± 0.8,71.0 ± 0.8\nb,62.0 ± 0.8,72.0 ± 0.8\n", 8, []),
        ("arm,rte,cola,Avg\na,61.0 ± 0.8,71.0 ± 0.8,66.0\n", 4, ["66.0 (line 2, Avg)"]),
        ("arm,rte,cola\na,61.0 ± 0.8,71.0\nc,60,70 ± 1\n", 3,
         ["60 (line 3, rte)", "70 (line 3, cola)", "1 (line 3, cola)"]),
        ("arm,rte,mrpc\na,61.0 ± 0.8,71.0 ± 0.8\n", 2, ["71.0 (line 2, mrpc)", "0.8 (line 2, mrpc)"]),
        ("arm,task,mean,sd,median\na,rte,61.0,0.8,61.5\n", 2, ["61.5 (line 2, median)"]),
        ("arm,task,mean,sd\na,rte,61.0,0.8\na,mrpc,80.5,0.8\n", 2, ["80.5 (line 3, mean)", "0.8 (line 3, sd)"]),
    ],
)  # fmt: skip
def test_figures_that_are_not_checked_are_counted_and_named(
    summary: str, num_checked: int, unchecked: list[str], tmp_path: Path
) -> None:
    path, other = tmp_path / "t.csv", tmp_path / "s.csv"
    path.write_text(LONG, encoding="utf-8")
    other.write_text(summary, encoding="utf-8")
    found = [it for it in judge_file(str(path), summary=str(other)).findings if "summary" in it.check]
    assert found[0].data == {"compared": num_checked}
    notes = [it for it in found if "not checked" in it.sentence]
    assert [it.data["unchecked"] for it in notes] == ([unchecked] if unchecked else [])
    for finding in notes:
        assert not finding.is_fault
        assert f"{len(unchecked)} of {num_checked + len(unchecked)} figures" in finding.sentence
        assert all(name in finding.sentence for name in unchecked)


HEADERS = ["Mean ± Std", "mean ± sd", "Avg ± std", "Average (std)", "Mean", "Result", "accuracy", "mean over 5 seeds"]
TIGHT = ["softmax,66.06,64.98,67.15,65.70,66.43", "ours,68.59,67.51,68.95,67.87,69.31"]
"""Means 66.064 and 68.446; SDs 0.809 and 0.747 (n − 1), 0.724 and 0.668 (n); standard errors 0.362 and 0.334."""


def judge_summary(tmp_path: Path, column: str, cells: tuple[str, str]) -> Judgement:
    header = f"method,s1,s2,s3,s4,s5,{column}"
    path = Path(write_rows(tmp_path, header, [f"{row},{cell}" for row, cell in zip(TIGHT, cells, strict=True)]))
    return judge_file(str(path.rename(tmp_path / "accuracy.csv")))


@pytest.mark.parametrize("column", HEADERS)
@pytest.mark.parametrize(
    ("cell", "wrong"),
    [
        ("68.45 ± 0.75", ""), ("68.4 ± 0.7", ""), ("68.45 (0.75)", ""), ("68.45 ± 0.67", ""),
        ("68.95 ± 0.75", "the mean is given as 68.95"), ("68.45 ± 0.95", "is given as 0.95"),
    ],
)  # fmt: skip
def test_a_column_of_means_with_spreads_beside_seeds_is_checked(
    tmp_path: Path, column: str, cell: str, wrong: str
) -> None:
    found = judge_summary(tmp_path, column, ("66.06 ± 0.81", cell))
    assert list_faults(found) == ["summary differs"] * bool(wrong)
    sentences = " ".join(finding.sentence for finding in found.findings)
    assert wrong in sentences
    assert ("all 4 figures agree" in sentences) == (not wrong)
    assert {cell.seed for cell in found.table.cells} == {"1", "2", "3", "4", "5"}


@pytest.mark.parametrize(
    ("spreads", "name"),
    [
        (("0.809", "0.747"), "SD (divided by n − 1)"),
        (("0.724", "0.668"), "population SD (divided by n)"),
        (("0.362", "0.334"), "standard error (SD/√n)"),
    ],
)
def test_the_spread_that_matches_is_named(tmp_path: Path, spreads: tuple[str, str], name: str) -> None:
    found = judge_summary(tmp_path, "Result", (f"66.06 ± {spreads[0]}", f"68.45 ± {spreads[1]}"))
    assert found.is_clean
    assert any(f"are: {name}" in finding.sentence for finding in found.findings)


@pytest.mark.parametrize(
    ("column", "sd", "hint"),
    [
        ("Mean ± SD", "0.334", "0.334 agrees with their standard error (SD/√n)"),
        ("Mean ± SD", "0.00747", "agrees with their SD as a fraction, unlike the mean"),
    ],
)
def test_a_spread_of_another_kind_than_its_name_is_a_fault(tmp_path: Path, column: str, sd: str, hint: str) -> None:
    (fault,) = judge_summary(tmp_path, column, ("66.06 ± 0.81", f"68.45 ± {sd}")).faults
    assert hint in fault.sentence


def test_a_mean_of_scores_that_were_rounded_later_is_no_fault(tmp_path: Path) -> None:
    path = write_rows(
        tmp_path, "method,s1,s2,s3,mean,std", ["base,82.0,82.1,82.4,82.13,0.24", "ours,83,84,83,83.6,0.9"]
    )
    assert "summary differs" not in list_faults(judge_file(path))


def test_summaries_of_tasks_beside_their_seeds(tmp_path: Path) -> None:
    header = "method,MNLI s1,MNLI s2,MNLI s3,MNLI mean ± std,RTE s1,RTE s2,RTE s3,RTE mean ± std"
    rows = ["base,84.10,84.30,84.50,84.30 ± 0.20,70.10,70.60,71.10,70.60 ± 0.50",
            "ours,85.10,85.30,85.20,85.20 ± 0.10,71.15,70.65,71.65,72.15 ± 0.50"]  # fmt: skip
    (fault,) = (it for it in judge_file(write_rows(tmp_path, header, rows)).faults if it.check == "summary differs")
    assert fault.sentence.startswith("1 of 8 figures of the columns 'MNLI mean ± std', 'RTE mean ± std' differ")
    assert "the mean is given as 72.15 (line 3, RTE mean ± std)" in fault.sentence


def test_population_sds_and_what_agrees_are_one_note(tmp_path: Path) -> None:
    rows = ["a,82.0,81.6,82.3,81.9,82.1,81.98 ± 0.23", "b,83.1,82.7,83.4,82.8,83.0,83.00 ± 0.24"]
    found = judge_file(write_rows(tmp_path, "model,s1,s2,s3,s4,s5,Mean ± Std", rows))
    (note,) = [finding.sentence for finding in found.findings if finding.check == "summary agrees"]
    assert note.startswith("all 4 figures agree with the recorded values")
    assert "2 SDs agree only as population SDs" in note
