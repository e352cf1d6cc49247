"""Each check finds the fault planted for it, in tables of every form, and none in a clean one."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from attnlab.studies.integrity import Judgement, JudgeOptions, judge, read_table
from tests.studies.integrity.result_tables import Recipe, Record, make_records, write_long, write_wide

Write = Callable[..., str]
WRITERS: list[Write] = [write_long, write_wide]
STEPS = (500, 1000, 1500, 2000)


def judged(path: str, **request: Any) -> Judgement:
    return judge(read_table(path), JudgeOptions(**request))


def checks(judgement: Judgement) -> list[str]:
    return [finding.check for finding in judgement.faults]


def find(records: list[Record], **whose: Any) -> list[Record]:
    return [record for record in records if all(record[name] == value for name, value in whose.items())]


RECIPES = st.builds(
    Recipe,
    seed=st.integers(0, 2**31),
    num_seeds=st.integers(5, 10),
    steps=st.sampled_from([(), (100,), (100, 200, 300)]),
    groups=st.sampled_from([("small",), ("small", "large")]),
    arms=st.sampled_from([("baseline", "cosine"), ("baseline", "cosine", "additive")]),
    num_examples=st.sampled_from([50, 277, 872, 3270, 10_570]),
    decimals=st.sampled_from([None, 1, 2, 4]),
    percent=st.booleans(),
    metrics=st.sampled_from([("em", "f1"), ("accuracy",), ("loss",), ("accuracy", "loss")]),
    spread=st.sampled_from([0.05, 0.005, 0.0005]),
    noise=st.sampled_from([0.01, 0.001, 0.0001]),
)


# The same tables each time: one in some hundred clean ones does have a seed that stands apart.
@settings(max_examples=60, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(recipe=RECIPES, write=st.sampled_from(WRITERS))
def test_a_clean_table_raises_no_alarm(recipe: Recipe, write: Write, tmp_path: Path) -> None:
    found = judged(write(tmp_path / "clean.csv", make_records(recipe), recipe.decimals))
    assert found.findings == ()
    assert found.is_clean
    json.dumps(found.record(), allow_nan=False)


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("decimals", [None, 4])
def test_a_last_step_without_new_values(tmp_path: Path, write: Write, decimals: int | None) -> None:
    records = make_records(Recipe(steps=STEPS, decimals=decimals))
    before = {(one["arm"], one["seed"], one["metric"]): one["value"] for one in find(records, step=1500)}
    for record in find(records, step=2000):
        record["value"] = before[record["arm"], record["seed"], record["metric"]]
    # Two seeds have each other's values besides.
    for record in find(records, step=2000, arm="cosine", seed=2):
        record["value"] = before["cosine", 3, record["metric"]]
    found = judged(write(tmp_path / "t.csv", records, decimals))
    assert checks(found) == ["repeated values"]
    (finding,) = found.findings
    assert finding.sentence.startswith(
        "Step 2000 holds no new value: of its 20 cells, 18 repeat the same run's step 1500"
    )
    assert finding.data["counts"]["another seed's value"] == 2
    assert [analysis.step for analysis in found.analyses] == [2000.0, 1500.0]


@pytest.mark.parametrize("write", WRITERS)
def test_one_value_of_another_seed(tmp_path: Path, write: Write) -> None:
    records = make_records(Recipe(metrics=("f1", "loss")))
    f1 = find(records, arm="cosine", metric="f1")
    f1[4]["value"] = f1[1]["value"]
    found = judged(write(tmp_path / "t.csv", records))
    assert checks(found) == ["repeated values"]
    assert (
        "1 repeats another seed's value (cosine small seed 4 has 1 of cosine small seed 1)"
        in found.findings[0].sentence
    )


@pytest.mark.parametrize("decimals", [None, 2, 4])
def test_a_run_that_is_another_arms(tmp_path: Path, decimals: int | None) -> None:
    records = make_records(Recipe(steps=STEPS, decimals=decimals))
    for record in find(records, arm="cosine"):
        (same,) = find(records, arm="baseline", **{name: record[name] for name in ("seed", "step", "metric")})
        record["value"] = same["value"]
    found = judged(write_long(tmp_path / "t.csv", records, decimals))
    assert checks(found) == ["repeated values"]
    assert "another arm's value" in found.findings[0].sentence


def test_a_run_that_is_another_seeds_in_coarse_values(tmp_path: Path) -> None:
    records = make_records(Recipe(steps=STEPS, decimals=2, num_seeds=6))
    for record in find(records, arm="cosine", seed=5):
        (same,) = find(records, arm="cosine", seed=0, step=record["step"], metric=record["metric"])
        record["value"] = same["value"]
    found = judged(write_long(tmp_path / "t.csv", records, 2))
    assert "repeated values" in checks(found)
    assert "cosine small seed 5 has 8 of cosine small seed 0" in found.findings[0].sentence


def test_coarse_values_repeat_by_chance(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    rows = "".join(f"{arm},{seed},{0.8 + 0.02 * (seed % 3):.2f}\n" for arm in ("base", "new") for seed in range(8))
    path.write_text(f"arm,seed,accuracy\n{rows}", encoding="utf-8")
    assert "repeated values" not in checks(judged(str(path)))


def test_perfect_scores_may_repeat(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    rows = "".join(
        f"{arm},{seed},{1.0 if seed < 4 else 0.987654 - seed / 1e3}\n" for arm in ("a", "b") for seed in range(6)
    )
    path.write_text(f"arm,seed,accuracy\n{rows}", encoding="utf-8")
    assert "repeated values" not in checks(judged(str(path))) or "1.0" not in judged(str(path)).findings[0].sentence


@pytest.mark.parametrize("num_other", [0, 1])
@pytest.mark.parametrize("has_labels", [True, False])
def test_one_answer_to_everything(tmp_path: Path, num_other: int, has_labels: bool) -> None:
    rows = []
    for arm in ("base", "new"):
        for seed in range(5):
            for example in range(200):
                label = (example * 7 + seed) % 3
                said = (
                    (0 if example >= num_other else 1)
                    if (arm, seed) == ("new", 3)
                    else (label + (example % 5 == seed)) % 3
                )
                rows.append(f"{arm},{seed},{example},{said}" + f",{label}" * has_labels)
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["arm,seed,id,prediction" + ",label" * has_labels, *rows]), encoding="utf-8")
    found = [finding for finding in judged(str(path)).faults if finding.check == "one answer only"]
    if num_other and not has_labels:
        # Without labels, nearly constant answers may be nearly right.
        assert found == []
        return
    assert len(found) == 1
    assert found[0].sentence.startswith("arm 'new' seed 3: ")
    assert ("most frequent label would be correct" in found[0].sentence) == has_labels


def test_answers_of_a_set_with_one_label_may_be_one(tmp_path: Path) -> None:
    rows = "\n".join(f"{arm},1,{i},1,1" for arm in "ab" for i in range(50))
    path = tmp_path / "t.csv"
    path.write_text(f"arm,seed,id,prediction,label\n{rows}", encoding="utf-8")
    assert "one answer only" not in checks(judged(str(path)))


@pytest.mark.parametrize("percent", [True, False])
@pytest.mark.parametrize("asked", [None, 872])
def test_an_accuracy_that_is_no_share(tmp_path: Path, percent: bool, asked: int | None) -> None:
    records = make_records(Recipe(metrics=("accuracy",), num_examples=872, percent=percent, num_seeds=6))
    records[7]["value"] += 0.0003 * (100 if percent else 1)
    found = judged(write_long(tmp_path / "t.csv", records), num_examples=asked)
    assert checks(found) == ["impossible values"]
    sentence = found.findings[0].sentence
    assert "accuracy is a multiple of 1/872" in sentence
    assert ("guessed: the others are, as on SST-2's validation set" in sentence) == (asked is None)
    assert found.findings[0].places == ("line 9, value",)


def test_rounded_shares_are_possible(tmp_path: Path) -> None:
    records = make_records(Recipe(metrics=("accuracy",), num_examples=277, decimals=3, percent=False))
    assert judged(write_long(tmp_path / "t.csv", records, 3), num_examples=277).is_clean
    records[0]["value"] = 0.602
    found = judged(write_long(tmp_path / "t.csv", records, 3), num_examples=277)
    assert ("impossible values" in checks(found)) == (round(round(0.602 * 277) / 277, 3) != 0.602)


@pytest.mark.parametrize(
    ("metric", "value", "message"),
    [
        ("accuracy", 103.5, "accuracy lies between 0 and 100"),
        ("f1", -0.5, "f1 lies between 0 and"),
        ("perplexity", 0.7, "perplexity is 1 or more"),
        ("mcc", -1.2, "mcc lies between -100 and 100"),
    ],
)
def test_values_beyond_the_metric(tmp_path: Path, metric: str, value: float, message: str) -> None:
    path = tmp_path / "t.csv"
    usual = {"accuracy": 70.0, "f1": 0.7, "perplexity": 20.0, "mcc": 55.0}[metric]
    rows = [f"{arm},{seed},{usual + seed * usual / 73 + (arm == 'b') / 7}" for arm in "ab" for seed in range(5)]
    extreme = value * 100 if metric == "mcc" else value
    path.write_text("\n".join([f"arm,seed,{metric}", *rows, f"b,9,{extreme}"]), encoding="utf-8")
    found = [finding.sentence for finding in judged(str(path)).faults if finding.check == "impossible values"]
    assert len(found) == 1
    assert message in found[0]


def test_an_f1_below_its_exact_match(tmp_path: Path) -> None:
    records = make_records(Recipe())
    (wrong,) = find(records, arm="cosine", seed=2, metric="f1")
    wrong["value"] = find(records, arm="cosine", seed=2, metric="em")[0]["value"] - 3.3
    assert "impossible values" in checks(judged(write_wide(tmp_path / "t.csv", records)))


@pytest.mark.parametrize("write", WRITERS)
def test_a_spread_that_rests_on_one_seed(tmp_path: Path, write: Write) -> None:
    records = make_records(Recipe(metrics=("f1",), num_seeds=5))
    for record in find(records, arm="cosine"):
        record["value"] = 70 + 0.11 * record["seed"] if record["seed"] != 3 else 48.123
    found = judged(write(tmp_path / "t.csv", records))
    assert checks(found) == ["spread of one seed"]
    assert "comes from seed 3 (48.123)" in found.findings[0].sentence


def test_arms_with_other_last_steps(tmp_path: Path) -> None:
    records = make_records(Recipe(steps=STEPS))
    records = [record for record in records if not (record["arm"] == "baseline" and record["step"] > 1500)]
    found = judged(write_long(tmp_path / "t.csv", records))
    assert "different budgets" in checks(found)
    assert "differ in last step: 'baseline' 1500, 'cosine' 2000" in found.findings[0].sentence


@pytest.mark.parametrize("name", ["tokens", "epochs", "batch_size", "train steps"])
def test_arms_with_other_budgets(tmp_path: Path, name: str) -> None:
    records = [record | {name: 1000 if record["arm"] == "baseline" else 2000} for record in make_records(Recipe())]
    found = judged(write_long(tmp_path / "t.csv", records))
    assert checks(found) == ["different budgets"]
    assert f"differ in {name}: 'baseline' 1000, 'cosine' 2000" in found.findings[0].sentence
    assert judged(write_long(tmp_path / "t.csv", [record | {name: 1000} for record in records])).is_clean


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize(
    ("num_seeds", "need"), [(1, "(one seed shows no spread to plan from)"), (3, "more would settle it"), (4, "about ")]
)
def test_too_few_seeds(tmp_path: Path, write: Write, num_seeds: int, need: str) -> None:
    records = make_records(Recipe(num_seeds=num_seeds, metrics=("f1",), steps=(1, 2)))
    found = judged(write(tmp_path / "t.csv", records))
    assert checks(found) == ["too few seeds"]
    assert need in found.findings[0].sentence
    assert {row.verdict for row in found.analyses[0].rows} == {"TOO FEW SEEDS (n < 5)"}


def write_summary(path: Path, records: list[Record], shift: float = 0.0, is_wide: bool = False) -> str:
    lines: list[str] = []
    figures = {}
    for arm in ("baseline", "cosine"):
        for metric in ("em", "f1"):
            values = [record["value"] for record in find(records, arm=arm, metric=metric)]
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
    assert judged(path, summary=right).findings == ()
    wrong = write_summary(tmp_path / "wrong.csv", records, 0.8, is_wide)
    found = judged(path, summary=wrong)
    assert checks(found) == ["summary differs"]
    assert found.findings[0].sentence.startswith(f"2 of 8 figures of {wrong} differ from the recorded values: cosine")


def test_runs_that_failed_are_counted(tmp_path: Path) -> None:
    records = make_records(Recipe(metrics=("f1",), num_seeds=8))
    for record in find(records, arm="cosine")[:6]:
        record["value"] = None
    row = judged(write_long(tmp_path / "t.csv", records)).analyses[0].rows[0]
    assert row.comparison is not None
    assert row.verdict == "NOT COMPARABLE (0 of 8 runs of the baseline and 6 of 8 of the variant failed)"
    assert row.comparison.stability == "LESS STABLE"


def test_losses_are_better_below(tmp_path: Path) -> None:
    records = make_records(Recipe(metrics=("loss",), num_seeds=8))
    for record in find(records, arm="cosine"):
        record["value"] -= 5
    (row,) = judged(write_long(tmp_path / "t.csv", records), smallest=0.1).analyses[0].rows
    assert row.verdict == "BETTER BY AT LEAST 0.1"
    assert row.comparison is not None
    assert row.comparison.difference < 0


def test_the_published_table() -> None:
    """A real table, where ATTNLAB_DATA names a folder that has it."""
    path = Path(os.environ.get("ATTNLAB_DATA") or os.devnull) / "published" / "value_bypass_full_stats_seeds.csv"
    if not path.is_file():
        pytest.skip("needs real data: set ATTNLAB_DATA to a folder with published/value_bypass_full_stats_seeds.csv")
    found = judged(str(path), summary=str(path.with_name("value_bypass_mean_std.csv")))
    repeated = found.findings[0]
    assert repeated.sentence.startswith(
        "Step 4152 holds no new value: of its 44 cells, 28 repeat the same run's step 4000, 4 "
    )
    assert repeated.data["counts"]["another seed's value"] == 12
    assert checks(found) == ["repeated values", "too few seeds"]
    assert [analysis.step for analysis in found.analyses] == [4152.0, 4000.0]
    last, before = ({(row.group[:2], row.metric): row for row in one.rows} for one in found.analyses)
    for rows, ratio in ((before, 2.9), (last, 19.8)):
        comparison = rows["6l", "f1"].comparison
        assert comparison is not None
        assert comparison.spread.ratio == pytest.approx(ratio, abs=0.05)
    # One of six comparisons, and the curves still rise.
    assert before["4l", "f1"].adjusted_p > 0.05
    assert before["4l", "f1"].verdict == "STILL TRAINING, INCONCLUSIVE SO FAR"
    assert {row.verdict for (size, _), row in before.items() if size != "4l"} == {"TOO FEW SEEDS (n < 5)"}
