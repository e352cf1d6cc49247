"""Every table of `make bench` runs, at sizes that say nothing about speed, and targets are judged right."""

import dataclasses
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from attnlab.kernels.comparison import Setting
from attnlab.tasks import load
from attnlab.training import FeatureStream, Segment
from benchmarks import (
    additive,
    algebra,
    band,
    bypass,
    data,
    distance,
    flex,
    growth,
    head,
    install,
    linear,
    mqar,
    pointwise,
    profile,
    stages,
    threads,
    training,
)
from benchmarks.__main__ import TABLES, main
from benchmarks.corpora import clm_features
from benchmarks.table import COLUMNS, Row, Table, Target, at_most, compared, less_by, share_of

TINY = Setting(num_heads=2, head_dim=8)

TINY_RUN = training.Case(
    "tiny", load("clm", max_len=12), {"n_layer": 1, "n_head": 2, "n_embd": 8, "vocab_size": 26604}, "gpt2",
    clm_features, 4, 2, 100, at_most(1e6), share_of(0),
)  # fmt: skip

TINY_TABLES: dict[str, Callable[[], Table]] = {
    "additive": partial(additive.table, TINY, 8, 0),
    "pointwise": partial(pointwise.table, TINY, 8, 0),
    "linear": partial(linear.table, TINY, 8, 0),
    "distance": partial(distance.table, TINY, 8, TINY, 8, 0),
    "stages": partial(stages.table, TINY, 8, 0),
    "band": partial(band.table, (TINY,), (32,), ("dot | softmax | window(4)",), 0),
    "algebra": partial(algebra.table, TINY, 8, 8, 0, 1),
    "threads": partial(threads.table, TINY, 8, 1),
    "bypass": partial(bypass.table, TINY, 8, 0),
    "install": partial(install.table, install.Size(1, 16, 2, 32, 2, 8), 0, install.CASES[-1:]),
    "data": partial(data.table, data.Corpus("embedded:squad?articles=1", "embedded:squad?articles=1", None, None), 0),
    "training": partial(training.table, 1, [TINY_RUN]),
    "profile": partial(profile.table, [dataclasses.replace(TINY_RUN, steps=3)]),
    "head": partial(head.table, {"tiny": (4, 3, 50)}, 0),
    "growth": partial(growth.table, TINY, (8, 16), 0),
    "mqar": lambda: mqar.table(mqar.Size(32, 16, 2, 8, 2, 4, 5), (1e-3,), Path(tempfile.mkdtemp())),
}


@pytest.mark.parametrize("name", TINY_TABLES)
def test_a_table_runs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    status = main([name], TINY_TABLES)
    out = capsys.readouterr().out
    assert f"$ python -m benchmarks {name}\n" in out
    assert status == ("✗" in out)


def test_every_table_runs_here_but_flex_which_compiles_for_long_and_those_of_a_browser_and_of_commands() -> None:
    assert set(TABLES) - set(TINY_TABLES) == {"flex", "report", "commands"}


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


def test_a_share_of_a_speed_is_judged() -> None:
    for speed, met in ((0.75e9, "✓"), (0.74e9, "✗")):
        row = Row("x", "speed", speed, "the peak", 1e9, share_of(0.75))
        cells = dict(zip(COLUMNS, row.cells(), strict=True))
        assert (cells["target"], cells["met"]) == ("≥ 75 %", met)
        assert cells["own against peer's"] == f"{speed / 1e7:.0f} %"
    assert Row("x", "speed", 1.0, "the peak", 2.0).cells()[-1] == "–"


def test_useful_operations_are_counted_without_padding() -> None:
    features = clm_features(TINY_RUN.task, 16)
    stream = FeatureStream(TINY_RUN.task, features[:-4], Segment(steps=2, batch=4), 0)
    batch = stream.make(stream.arrangement.rows(0, 1), 0)
    lengths = batch["attention_mask"].sum(1)
    num_labels = int((lengths - 1).sum())
    body, vocabulary = 12 * 8 * 8, 8 * 26604
    attention = int((lengths * (lengths + 1)).sum()) * 8
    expected = 6 * (int(lengths.sum()) * body + num_labels * vocabulary + attention)
    assert training.count_operations(TINY_RUN, features) == expected


def test_an_unknown_table_names_the_closest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["aditive"]) == 2
    assert "did you mean 'additive'?" in capsys.readouterr().err
