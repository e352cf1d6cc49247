"""The study's end of the line to the process that starts runs: orders out, answers in, and Ctrl-C heard meanwhile."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from attnlab.errors import StudyError

POLL = 0.2
"""Seconds between looks at whether somebody asked to stop."""
DIED = "the process that starts runs has died; the same command goes on with the study"


class Dispatch:
    """A server process. It has a process group of its own: Ctrl-C in a terminal is the study's to pass on."""

    def __init__(self, plugins: Sequence[str] = ()) -> None:
        # Threads are each run's own to set; a pool that was made before a fork would be waited for in vain.
        self.process = subprocess.Popen(
            [sys.executable, "-m", "attnlab.studies.run.server", *plugins],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "OMP_NUM_THREADS": "1"},
            process_group=0, bufsize=0,
        )  # fmt: skip
        self.waiting = b""

    def send(self, order: dict[str, Any]) -> None:
        """Give an order."""
        assert self.process.stdin is not None
        rest = memoryview((json.dumps(order) + "\n").encode())
        try:
            while rest:
                rest = rest[self.process.stdin.write(rest) :]
        except BrokenPipeError as error:
            raise StudyError(DIED) from error

    def hear(self) -> list[dict[str, Any]]:
        """Return what was answered, after a short while nothing."""
        assert self.process.stdout is not None
        if not select.select([self.process.stdout], [], [], POLL)[0]:
            return []
        got = os.read(self.process.stdout.fileno(), 2**16)
        if not got:
            raise StudyError(DIED)
        *lines, self.waiting = (self.waiting + got).split(b"\n")
        return [json.loads(line) for line in lines]

    def close(self, *, at_once: bool) -> None:
        """End the process: when its workers have, or with them at once."""
        if at_once and self.process.returncode is None:  # once it has ended, its number may be another's
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
