"""The runs of one phase and size: figures, shared seeds, gains late in training, leak-free figures."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from attnlab.studies.answers.run_table import RunTable, explain_leak
from attnlab.studies.ledger.database import Delivery, Ledger
from attnlab.studies.run.execution import make_row
from attnlab.studies.study import Study

from ..folders import PAIRING, two_arms


class Runs:
    """The runs of a study of two arms, with the results that a test gives them."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger, self.planned = ledger, Study.of(two_arms()).plan()
        ledger.add_runs([make_row(run) for run in self.planned])

    def give(self, arm: str, values: list[Any], figure: str = "accuracy", before: float = 0.0, **last: Any) -> None:
        """Deliver an evaluation at step 100 with these figures, and one at step 80 with the figure `before`."""
        for run, value in zip([run for run in self.planned if run.arm == arm], values, strict=False):
            figures = value if isinstance(value, dict) else {figure: value}
            result = {"last": {"step": 100, "primary": figure, "figures": figures, **last}}
            lines = [{"kind": "evaluation", "step": 80, figure: before}]
            attempt = self.ledger.begin(run.id, "here")
            self.ledger.deliver(Delivery(run.id, attempt, "finished", result, lines, PAIRING, [], {}))

    @property
    def table(self) -> RunTable:
        """The table of the only phase and size."""
        return RunTable.select(("recall", "tiny"), ("dot", "better"), self.planned, self.ledger.results(), self.ledger)


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    yield Runs(ledger)
    ledger.close()


def test_a_table_without_results_is_empty(runs: Runs) -> None:
    table = runs.table
    assert (table.metric, table.floor, table.ceiling) == (None, None, None)
    assert table.values("dot", "accuracy") == dict.fromkeys(range(1, 6))
    assert table.shared_seeds("dot", "better", metric="accuracy") == []
    assert table.late_gain("dot", "accuracy") is None


def test_seeds_are_shared_if_both_arms_have_a_finite_figure(runs: Runs) -> None:
    runs.give("dot", [0.5, 0.5, "NaN", 0.5])
    runs.give("better", [0.6, "Infinity", 0.6, 0.6, 0.6])
    assert runs.table.shared_seeds("dot", "better", metric="accuracy") == [1, 4]
    assert runs.table.values("dot", "accuracy") == {1: 0.5, 2: 0.5, 3: None, 4: 0.5, 5: None}


def test_floor_and_ceiling_come_from_the_evaluation(runs: Runs) -> None:
    runs.give("dot", [0.5], floor=0.2, floor_strategy="commonest in context", ceiling=1.0)
    assert (runs.table.floor, runs.table.ceiling) == ((0.2, "commonest in context"), 1.0)


@pytest.mark.parametrize(
    ("figure", "before", "now", "gain"),
    [("accuracy", 0.4, 0.5, 0.1), ("loss", 2.0, 1.5, 0.5), ("perplexity", 110.0, 100.0, 10.0)],
)
def test_a_late_gain_is_positive_if_the_arm_improved(
    figure: str, before: float, now: float, gain: float, runs: Runs
) -> None:
    runs.give("dot", [now, now], figure, before)
    assert runs.table.late_gain("dot", figure) == pytest.approx(gain)


def test_perplexities_are_measured_in_logs(runs: Runs) -> None:
    runs.give("dot", [100.0, "NaN"], "perplexity")
    measured = runs.table.measure(("dot",), "perplexity")
    assert measured.scale == "log"
    assert measured.tables["dot"] == {1: pytest.approx(math.log(100)), 2: None, 3: None, 4: None, 5: None}


@pytest.mark.parametrize("metric", ["leak_free_perplexity", "honest_perplexity"])
def test_a_leak_is_explained_with_the_leak_free_perplexity_also_by_its_old_name(runs: Runs, metric: str) -> None:
    runs.give("better", [{"perplexity": 2.0, metric: 300.0}] * 2, "perplexity")
    runs.give("dot", [50.0], "perplexity")
    assert explain_leak(runs.table, "better", "dot", "perplexity") == (
        "its perplexity without access to future tokens is 300 (mean of 2 seeds), not 2; the baseline's is 50"
    )
    assert "no leak-free figure" in explain_leak(runs.table, "dot", "dot", "accuracy")
