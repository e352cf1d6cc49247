"""Timed runs: times that add up, and a process that ends with them."""

from __future__ import annotations

import pytest

from attnlab.errors import StudyError
from attnlab.studies.cost.timing import RunTimer, RunTiming
from attnlab.studies.run.workload import SegmentWork, Workload

from ..run.test_workload import PARAMETERS
from ..samples import study


def test_a_run_takes_what_its_parts_take() -> None:
    work = Workload(
        1,
        1,
        (SegmentWork(10, 1.0, 1.0), SegmentWork(5, 1.0, 1.0)),
        3,
        1,
        2,
        1,
        1,
        2,
    )
    timing = RunTiming(7.0, (0.5, 2.0), 1.5, 0.5, 0.25, 0, 2)
    assert timing.average_updates(work) == pytest.approx(1.0)
    assert timing.add_up(work) == pytest.approx(7 + 10 * 0.5 + 5 * 2 + 3 * 1.5 + 0.5 + 2 * 0.25)


def test_timed_runs_have_a_process_of_their_own() -> None:
    run = study(seeds=[1]).plan()[0].run
    with RunTimer() as timer:
        workload, timing = timer.time_run("a run", run, None, 0.1)
        assert workload.num_parameters == PARAMETERS
        assert timing is not None
        assert timing.num_timed > 0
        odd = study(seeds=[1], sizes__tiny__config__n_embd=15).plan()[0].run
        with pytest.raises(StudyError, match="odd: no model can be built"):
            timer.time_run("odd", odd, None, 0.0)
        assert timer.time_run("a run", run, None, 0.0) == (workload, None)
    assert timer.opening > 0
    assert timer.workers is not None
    assert timer.workers.process.poll() == 0
