"""A clean table raises no alarm, and a published one has the faults that are known."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.studies.integrity.result_tables import (
    WRITERS,
    Recipe,
    Write,
    judge_file,
    list_faults,
    make_records,
)

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
    found = judge_file(write(tmp_path / "clean.csv", make_records(recipe), recipe.decimals))
    assert found.findings == ()
    assert found.is_clean
    json.dumps(found.record(), allow_nan=False)


def test_the_published_table() -> None:
    """A real table, where ATTNLAB_DATA names a folder that has it."""
    path = Path(os.environ.get("ATTNLAB_DATA") or os.devnull) / "published" / "value_bypass_full_stats_seeds.csv"
    if not path.is_file():
        pytest.skip("needs real data: set ATTNLAB_DATA to a folder with published/value_bypass_full_stats_seeds.csv")
    found = judge_file(str(path), summary=str(path.with_name("value_bypass_mean_std.csv")))
    repeated = found.findings[0]
    assert repeated.sentence.startswith(
        "Step 4152 holds no new value: of its 44 cells, 28 repeat the same run's step 4000, 4 "
    )
    assert repeated.data["counts"]["another seed's value"] == 12
    assert list_faults(found) == ["repeated values"]
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
