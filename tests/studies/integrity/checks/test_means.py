"""Means are compared by Welch's t if SD and number of seeds are known; what is missing is said."""

import math
from pathlib import Path

import pytest
from scipy.stats import ttest_ind_from_stats

from attnlab.studies.integrity import IntegrityKind, JudgeOptions, TableHints, judge, read_table
from tests.studies.integrity.result_tables import get_comparison, get_only_row, judge_file, write_rows, write_text

TEXT = "method,acc\nbaseline,82.1 ± 0.4\nours,83.0 ± 0.3\n"


def test_welch_from_means(tmp_path: Path) -> None:
    row = get_only_row(judge(read_table(write_text(tmp_path, TEXT), hints=TableHints(num_seeds=6))))
    expected = ttest_ind_from_stats(83.0, 0.3, 6, 82.1, 0.4, 6, equal_var=False).pvalue
    assert get_comparison(row).p == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "verdict", "need"),
    [
        (TEXT, "NOT COMPARABLE (the number of seeds is not given)", "--seeds N or a column n_seeds"),
        ("method,acc,n_seeds\na,82.1,5\nb,83.0,5\n", "NOT COMPARABLE (the SD over seeds is not given)", "needs its SD"),
    ],
)
def test_what_is_missing_is_said(tmp_path: Path, text: str, verdict: str, need: str) -> None:
    judgement = judge(read_table(write_text(tmp_path, text)))
    assert get_only_row(judgement).verdict == verdict
    (finding,) = judgement.findings
    assert (finding.check, finding.is_fault) == ("only means", False)
    assert need in finding.sentence


def test_a_standard_error_beside_a_number_of_seeds_is_over_seeds(tmp_path: Path) -> None:
    text = "method,mean,stderr,n\nbaseline,82.1,0.1,4\nours,83.0,0.1,4\n"
    table = read_table(write_text(tmp_path, text))
    assert [cell.sd for cell in table.cells] == pytest.approx([0.2, 0.2])
    assert "standard errors from 'stderr'" in table.layout


def test_a_perplexity_is_compared_as_it_is(tmp_path: Path) -> None:
    text = "method,ppl\nbaseline,20.0 ± 0.1\nours,19.0 ± 0.1\n"
    row = get_only_row(judge(read_table(write_text(tmp_path, text), hints=TableHints(num_seeds=5))))
    assert get_comparison(row).question.smallest == pytest.approx(0.2)
    assert row.verdict == "BETTER BY AT LEAST 0.2"


def test_means_have_no_pairs(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="--paired needs the score of every seed; this table has only means"):
        judge(read_table(write_text(tmp_path, TEXT)), JudgeOptions(is_paired=True))


def test_the_metrics_without_a_spread_are_named(tmp_path: Path) -> None:
    text = "method,acc,f1\nbaseline,82.1 ± 0.4,71.0\nours,83.0 ± 0.3,72.0\n"
    judgement = judge(read_table(write_text(tmp_path, text), hints=TableHints(num_seeds=5)))
    assert "each mean of f1 needs its SD over seeds" in next(one.sentence for one in judgement.findings)


def test_a_spread_of_one_seed(tmp_path: Path) -> None:
    rows = ["base,82.1,0.4,5", "ours,83.27,0.3,1", "other,81.0,,1", "last,81.5,0,1"]
    found = judge_file(write_rows(tmp_path, "method,accuracy_mean,accuracy_std,n_seeds", rows))
    (finding,) = (it for it in found.faults if it.kind == IntegrityKind.SPREAD_OF_ONE_SEED)
    assert "ours accuracy 83.27 ± 0.3 (line 3, accuracy_mean). An SD over seeds cannot come" in finding.sentence
    assert finding.data["num_cells"] == 1
    for row in found.analyses[-1].rows:
        assert row.comparison is not None
        assert math.isnan(row.comparison.data.variant.sd)


@pytest.mark.parametrize("spread", ["", " $\\pm$ 0.2"])
def test_a_caption_with_one_seed(tmp_path: Path, spread: str) -> None:
    path = tmp_path / "table.tex"
    rows = " \\\\ ".join(f"{arm} & {score}{spread}" for arm, score in (("base", 84.1), ("ours", 84.9)))
    path.write_text(
        "\\begin{table}\\caption{Accuracy of a single run.}\\begin{tabular}{lc} Method & MNLI \\\\ \\midrule "
        f"{rows} \\\\ \\end{{tabular}}\\end{{table}}",
        encoding="utf-8",
    )
    found = judge_file(str(path))
    assert "1 seed each (the caption)" in found.table.layout
    assert get_only_row(found).verdict.startswith("TOO FEW SEEDS")
    kinds = {finding.kind for finding in found.findings}
    assert (IntegrityKind.SPREAD_OF_ONE_SEED in kinds) == bool(spread)
    assert IntegrityKind.ONLY_MEANS not in kinds


def test_a_column_std_is_the_spread_of_the_only_metric(tmp_path: Path) -> None:
    found = judge_file(write_rows(tmp_path, "method,accuracy,std,n_seeds", ["base,82.1,0.4,5", "ours,83.3,0.5,5"]))
    assert [cell.sd for cell in found.table.values] == [0.4, 0.5]
