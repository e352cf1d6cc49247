"""The study's end of the line to the process that tries runs out: a run's order out, its workload and timing in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from time import perf_counter
from types import TracebackType
from typing import Any

from attnlab.errors import StudyError
from attnlab.training import RunSpec

from .trial import RunTiming
from .workload import Workload

DIED = "the process that tries runs out has died; --no-calibration may do with less memory"


class Trials:
    """A process that tries runs out, started when the first one comes."""

    def __init__(self, plugins: Sequence[str] = ()) -> None:
        self.plugins = plugins
        self.process: subprocess.Popen[str] | None = None
        # The study's own, since a child that is ended in the midst of a trial leaves what it has written.
        self.place = tempfile.TemporaryDirectory(prefix="attnlab-trials-")
        self.opening = 0.0
        """Seconds until the process had imported everything, which those that train need as well."""

    def __enter__(self) -> Trials:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process is not None:
            if error is not None:
                self.process.kill()
            self.process.communicate()
        self.place.cleanup()

    def put(self, title: str, run: RunSpec, first: RunSpec | None, seconds: float) -> tuple[Workload, RunTiming | None]:
        """Have a run tried. first: the one that it comes after in the end. seconds: for timing, 0 for none."""
        found = self.ask({
            "config": run.model_dump(mode="json"), "first": None if first is None else first.config,
            "seconds": seconds, "place": self.place.name,
        })  # fmt: skip
        if "error" in found:
            raise StudyError(f"{title}: {found['error']}")
        return Workload.of(found["workload"]), RunTiming.of(found["timing"]) if "timing" in found else None

    def ask(self, order: dict[str, Any]) -> dict[str, Any]:
        """Give an order, and wait for its answer."""
        if self.process is None:
            began = perf_counter()
            self.process = subprocess.Popen(
                [sys.executable, "-m", "attnlab.studies.cost.trial", *self.plugins], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
            )  # fmt: skip
            self.hear()
            self.opening = perf_counter() - began
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(order) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError as error:
            raise StudyError(DIED) from error
        return self.hear()

    def hear(self) -> dict[str, Any]:
        """Wait for an answer."""
        assert self.process is not None
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise StudyError(DIED)
        found: dict[str, Any] = json.loads(line)
        return found
