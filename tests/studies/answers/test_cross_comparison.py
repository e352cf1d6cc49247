"""Results from several places: which arms, metrics and groups are compared, and the verdicts."""

from pathlib import Path

import pytest

from attnlab.errors import RequestError
from attnlab.studies.answers.cross_comparison import CrossComparison, compare_sources
from attnlab.studies.answers.result_source import read_source
from attnlab.studies.integrity import JudgeOptions
from tests.studies.folders import BETTER, DOT, two_arms, write_folder

LIST = "list=0.50,0.52,0.51,0.49,0.53"
BETTER_LIST = "better=0.60,0.63,0.60,0.59,0.64"


def compare(
    *texts: str, arms: tuple[str, ...] = (), metric: str | None = None, paired: bool = False
) -> CrossComparison:
    sources = [read_source(text, number) for number, text in enumerate(texts, start=1)]
    return compare_sources(sources, arms, JudgeOptions(is_paired=paired), metric)


def list_verdicts(found: CrossComparison) -> list[tuple[str, str, str]]:
    return [(row.arm, row.group, row.verdict) for row in found.judgement.analyses[-1].rows]


def test_lists_of_numbers() -> None:
    found = compare(LIST, BETTER_LIST, metric="accuracy")
    assert found.judgement.table.metrics == ["accuracy"]
    assert list_verdicts(found) == [("better", "", "BETTER BY AT LEAST 0.01")]
    assert not found.is_paired
    assert found.unknown[0] == "list does not record its seeds, data, code, settings"


def test_the_same_arms_of_two_studies_are_pairs(tmp_path: Path) -> None:
    first = write_folder(tmp_path / "first", {"dot": DOT, "better": BETTER})
    second = write_folder(tmp_path / "second", {"dot": BETTER, "better": BETTER}, two_arms(seeds=[1, 2, 3, 4, 5]))
    found = compare(str(first), str(second))
    assert found.is_paired
    assert {group: verdict for _, group, verdict in list_verdicts(found)} == {
        "dot": "BETTER BY AT LEAST 0.02", "better": "DEGENERATE",
    }  # fmt: skip
    assert {"data", "seeds", "settings"} - {*found.same} <= {"data"}  # these folders have no data


def test_a_study_and_a_file(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "study", {"dot": DOT, "better": BETTER})
    file = tmp_path / "theirs.csv"
    rows = [f"theirs,{seed},{score}" for seed, score in enumerate(BETTER, start=1)]
    file.write_text("\n".join(["arm,seed,accuracy", *rows]), encoding="utf-8")
    found = compare(str(folder), str(file), arms=("dot", "theirs"))
    assert list_verdicts(found) == [("theirs.csv", "", "BETTER BY AT LEAST 0.02")]
    assert found.others == ("better",)
    assert compare(str(folder), str(file), arms=("dot", "theirs"), paired=True).is_paired


def test_other_numbers_of_examples_are_not_comparable(tmp_path: Path) -> None:
    for name, num in (("a", 100), ("b", 200)):
        rows = [f"{seed},{(50 + seed) / 100},{num}" for seed in range(5)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["seed,accuracy,n_test", *rows]), encoding="utf-8")
    found = compare(str(tmp_path / "a.csv"), str(tmp_path / "b.csv"))
    assert list_verdicts(found)[0][2] == "NOT COMPARABLE (evaluated on different numbers of examples)"


@pytest.mark.parametrize(
    ("texts", "arms", "metric", "message"),
    [
        ([LIST, BETTER_LIST], ("x",), None, "list has no arm 'x'"),
        ([LIST, BETTER_LIST], ("a", "b", "c"), None, "--arm is given 3 times for 2 results"),
        (["FILE", LIST], (), None, "no arm is in all of them: .* Name one of each, such as --arm a --arm list"),
        (["FILE", LIST], ("a", "list"), None, "no metric is in all of them, so nothing can be compared"),
        (["FILE", LIST], ("a", "list"), "acuracy", "has no metric 'acuracy', did you mean 'accuracy'"),
    ],
)
def test_what_does_not_fit_together(
    texts: list[str], arms: tuple[str, ...], metric: str | None, message: str, tmp_path: Path
) -> None:
    file = tmp_path / "t.csv"
    file.write_text("arm,seed,accuracy,f1\na,1,0.5,0.6\nb,1,0.6,0.7\n", encoding="utf-8")
    with pytest.raises(RequestError, match=message):
        compare(*(str(file) if text == "FILE" else text for text in texts), arms=arms, metric=metric)


def test_groups_that_do_not_match_have_a_way_forward(tmp_path: Path) -> None:
    for name, task in (("a", "MNLI-m"), ("b", "MNLI")):
        rows = [f"{seed},{group},{seed}" for seed in range(3) for group in (task, f"{task} small")]
        (tmp_path / f"{name}.csv").write_text("\n".join(["seed,task,accuracy", *rows]), encoding="utf-8")
    message = r"no group is in all of them.*MNLI-m, MNLI-m small; .*MNLI, MNLI small\. Give groups .* one name .*--map"
    with pytest.raises(RequestError, match=message):
        compare(str(tmp_path / "a.csv"), str(tmp_path / "b.csv"))


def write_seeds(tmp_path: Path) -> tuple[str, str]:
    rows, scores = tmp_path / "lab.csv", tmp_path / "lab.json"
    rows.write_text("seed,accuracy\n0,82.1\n1,82.4\n2,81.9\n", encoding="utf-8")
    scores.write_text('{"arm": "ours", "metric": "accuracy", "scores": {"0": 82, "1": 83, "2": 82}}', encoding="utf-8")
    return str(rows), str(scores)


def test_seeds_that_are_keys_are_pairs(tmp_path: Path) -> None:
    found = compare(*write_seeds(tmp_path), paired=True)
    assert "seeds" in found.same
    assert not found.different


def test_runs_without_seeds_are_not_said_to_differ_in_seeds(tmp_path: Path) -> None:
    rows, _ = write_seeds(tmp_path)
    assert not compare(rows, "82.1,82.3,82.2", metric="accuracy").different
    with pytest.raises(RequestError, match="list 2 does not record its seeds"):
        compare(rows, "82.1,82.3,82.2", metric="accuracy", paired=True)
