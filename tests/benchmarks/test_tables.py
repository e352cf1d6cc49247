"""Every table of `make bench` runs, at sizes that say nothing about speed, and targets are judged right."""

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from attnlab.kernels.comparison import Setting
from attnlab.tasks import load
from benchmarks import (
    additive,
    bypass,
    data,
    distance,
    flex,
    growth,
    install,
    linear,
    mqar,
    pointwise,
    stages,
    training,
)
from benchmarks.__main__ import TABLES, main
from benchmarks.corpora import clm_features
from benchmarks.table import COLUMNS, Row, Table, Target, at_most, compared, less_by

TINY = Setting(num_heads=2, head_dim=8)

TINY_RUN = training.Case(
    "tiny", load("clm", max_len=12), {"n_layer": 1, "n_head": 2, "n_embd": 8, "vocab_size": 26604}, "gpt2",
    clm_features, 4, 2, 100, at_most(1e6),
)  # fmt: skip

TINY_TABLES: dict[str, Callable[[], Table]] = {
    "additive": partial(additive.table, TINY, 8, 0),
    "pointwise": partial(pointwise.table, TINY, 8, 0),
    "linear": partial(linear.table, TINY, 8, 0),
    "distance": partial(distance.table, TINY, 8, TINY, 8, 0),
    "stages": partial(stages.table, TINY, 8, 0),
    "bypass": partial(bypass.table, TINY, 8, 0),
    "install": partial(install.table, install.Size(1, 16, 2, 32, 2, 8), 0, install.CASES[-1:]),
    "data": partial(data.table, data.Corpus("embedded:squad?articles=1", "embedded:squad?articles=1", None, None), 0),
    "training": partial(training.table, 1, [TINY_RUN]),
    "growth": partial(growth.table, TINY, (8, 16), 0),
    "mqar": lambda: mqar.table(mqar.Size(32, 16, 2, 8, 2, 4, 5), (1e-3,), Path(tempfile.mkdtemp())),
}


@pytest.mark.parametrize("name", TINY_TABLES)
def test_a_table_runs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    status = main([name], TINY_TABLES)
    out = capsys.readouterr().out
    assert f"$ python -m benchmarks {name}\n" in out
    assert status == ("✗" in out)


def test_every_table_runs_here_but_flex_which_compiles_for_long_and_that_of_a_browser() -> None:
    assert set(TABLES) - set(TINY_TABLES) == {"flex", "report"}


def test_flex_that_fails_is_said_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> object:
        raise RuntimeError("no compiler\nand a long trace")

    monkeypatch.setattr(flex, "flex_steps", lambda setting, length: {f"flex, {flex.PLAIN}": fail})
    table = flex.table(TINY, 8, 0)
    assert table.rows == []
    assert any("RuntimeError: no compiler" in note for note in table.notes)
    assert any("no backward" in note for note in table.notes)


def test_growth_stops_where_a_step_would_take_too_long() -> None:
    table = growth.table(TINY, (8, 16), 0, limit=0)
    assert {row[2] for row in table.rows} == {"8"}
    assert len(table.notes) == len(growth.NAMES)


@pytest.mark.parametrize(
    ("own", "target", "ratio", "met"),
    [
        (2.0, at_most(1.9), "2.00×", "✗"),
        (2.0, at_most(2.0), "2.00×", "✓"),
        (0.1, less_by(10), "10.0× less", "✓"),
        (0.1, less_by(11), "10.0× less", "✗"),
        (0.5, None, "2.00× less", "–"),
        (2.0, None, "2.00×", "–"),
    ],
)
def test_targets_are_judged(own: float, target: Target | None, ratio: str, met: str) -> None:
    cells = dict(zip(COLUMNS, Row("x", "time", own, "y", 1.0, target).cells(), strict=True))
    assert (cells["own against peer's"], cells["met"]) == (ratio, met)


def test_a_missed_target_is_status_1(capsys: pytest.CaptureFixture[str]) -> None:
    def table(seconds: float) -> Table:
        return compared("title", [Row("x", "time", seconds, "y", 1.0, at_most(1))])

    assert main([], {"good": lambda: table(0.5)}) == 0
    assert main([], {"good": lambda: table(0.5), "bad": lambda: table(2.0)}) == 1
    assert "Targets missed: 1." in capsys.readouterr().out


def test_an_unknown_table_names_the_closest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["aditive"]) == 2
    assert "did you mean 'additive'?" in capsys.readouterr().err
