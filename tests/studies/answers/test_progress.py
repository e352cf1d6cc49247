"""What is said of a study while it runs: from half a line of metrics to which arm is ahead, and never a verdict."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from attnlab.errors import StudyError
from attnlab.studies.answers.progress import Progress, Snapshot
from attnlab.studies.run.execution import Execution
from attnlab.training.loop.stopping import StopRequest

from ..moments import Moment, evaluation, update, write
from ..samples import quiet, study


@pytest.fixture
def moment(tmp_path: Path) -> Iterator[Moment]:
    found = Moment(tmp_path)
    found.hold()
    yield found
    found.ledger.close()


@pytest.fixture
def planned(moment: Moment) -> Moment:
    moment.plan()
    return moment


def test_a_study_that_is_audited_has_no_runs_yet(moment: Moment) -> None:
    seen = Progress(moment.folder).look()
    assert (seen.name, seen.question, seen.condition) == ("small", "does a bypass help recall?", "preparing")
    assert (seen.runs, seen.seconds_left, seen.leaderboards) == ((), None, ())


def test_what_is_no_study_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="is no folder"):
        Progress(tmp_path / "nothing")
    with pytest.raises(StudyError, match="holds no study"):
        Progress(tmp_path).look()


def test_runs_are_going_waiting_ended_or_given_up(planned: Moment) -> None:
    planned.end("dot", 1, 0.5)
    write(planned.begin("dot", 2), update(10, 3.0, 1.0) + update(20, 2.0, 2.0) + evaluation(20, 0.25))
    failed = planned.run("bypass", 1)
    planned.ledger.fail(planned.ledger.begin(failed.id, "here:1"), "memory")
    planned.ledger.give_up(failed.id, "memory")
    seen = Progress(planned.folder).look()
    states = {(one.run.arm, one.run.seed): one.state for one in seen.runs}
    assert states == {
        ("dot", 1): "finished", ("dot", 2): "running", ("bypass", 1): "given up", ("bypass", 2): "waiting",
        ("slow", 1): "waiting", ("slow", 2): "waiting",
    }  # fmt: skip
    assert (seen.condition, seen.num_ended, seen.num_given_up) == ("running", 1, 1)
    (going,) = seen.going
    assert (going.step, going.num_steps, going.loss, going.tokens_per_second) == (20, 100, 2.0, 1000.0)
    assert going.seconds_left == pytest.approx(8.0)
    assert going.evaluation == (20, "accuracy", 0.25)


def test_an_attempt_that_failed_is_not_going_and_the_next_one_is(planned: Moment) -> None:
    run = planned.run("dot", 1)
    planned.ledger.fail(planned.ledger.begin(run.id, "here:1"), "memory")
    assert Progress(planned.folder).look().going == []
    planned.ledger.begin(run.id, "here:1")
    assert [one.run.id for one in Progress(planned.folder).look().going] == [run.id]


def test_nothing_is_going_where_nobody_works(planned: Moment) -> None:
    planned.begin("dot", 1)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    planned.hold(gone.pid)
    seen = Progress(planned.folder).look()
    assert (seen.condition, seen.going, seen.seconds_left) == ("stopped", [], None)
    (planned.folder / "lock").write_text("", encoding="utf-8")
    assert Progress(planned.folder).look().condition == "stopped"
    planned.hold(1, "another.example")
    assert Progress(planned.folder).look().condition == "running"


def test_time_left_is_what_runs_of_the_kind_took(planned: Moment) -> None:
    assert Progress(planned.folder).look().seconds_left is None
    planned.end("dot", 1, 0.5, seconds=10.0)
    write(planned.begin("dot", 2), update(50, 3.0, 5.0))
    seen = Progress(planned.folder).look()
    # 5 s of the run that goes, and three runs of 10 s like dot's mean of 10 and 10, and one more.
    assert seen.seconds_left == pytest.approx(5 + 4 * 10, rel=1e-6)
    write(planned.begin("bypass", 1), update(50, 3.0, 5.0))
    assert Progress(planned.folder).look().seconds_left == pytest.approx((5 + 5 + 3 * 10) / 2, rel=1e-6)


@pytest.mark.usefixtures("here")
def test_a_study_is_looked_at_while_it_runs(tmp_path: Path) -> None:
    moment = Moment(tmp_path, study(seeds=[1], phases__recall__log_every=1))
    moment.hold()
    moment.plan()
    progress = Progress(tmp_path, num_curves=9)
    seen: list[Snapshot] = []
    work = Execution(
        tmp_path, moment.ledger, moment.planned, quiet, StopRequest(), tick=lambda: seen.append(progress.look())
    )  # fmt: skip
    work.run()
    moment.ledger.close()
    assert [one.num_ended for one in seen] == [1, 2, 3]
    assert [one.condition for one in seen] == ["running", "running", "ended"]
    assert [[step for step, _ in one.curve] for one in seen[-1].runs] == [[1, 2, 3, 4]] * 3
    assert [one.evaluation is not None for one in seen[-1].runs] == [True] * 3
