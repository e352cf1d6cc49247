"""Workers that train runs: the interface through which a study sends runs and receives events, and local workers.

`LocalWorkers` talks to a server process on this machine (`server.py`) in lines of JSON; `cluster.py` has the workers of
a Ray cluster, which forward the events of a server on each node.
"""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol

from attnlab.errors import StudyError

SERVER, PARENT = "attnlab.studies.run.server", "attnlab.studies.run.parent"
POLL = 0.2
"""Seconds that `receive` waits at most, so that Ctrl-C is noticed."""
DIED = "the process that starts runs has died; the same command resumes the study"


@dataclass(frozen=True)
class RunOrder:
    """A run to be trained: its id, its folder, and its config as plain data."""

    id: str
    folder: str
    config: dict[str, Any]


@dataclass(frozen=True)
class RunEvent:
    """An event of a run; "lost" means that its node is gone."""

    id: str
    kind: Literal["started", "finished", "interrupted", "failed", "lost"]
    detail: str = ""
    """The worker of a run that started, and the reason why one failed or was lost."""
    pid: int | None = None
    """The process of a run that started."""


class Workers(Protocol):
    """Trains runs in other processes. Each run that is sent ends with one event that is not "started"."""

    def send(self, order: RunOrder) -> None:
        """Start a run, or queue it."""

    def stop(self) -> None:
        """Ask all runs to write a checkpoint and to end."""

    def receive(self) -> list[RunEvent]:
        """Return new events; wait for them for a short while."""

    def close(self, *, at_once: bool) -> None:
        """End the workers, if at once without waiting for their runs."""


class LocalWorkers:
    """Processes on this machine, forked by a server in a process group of its own: it does not see Ctrl-C."""

    def __init__(self, plugins: Sequence[str] = (), server: str = SERVER) -> None:
        # Each run sets its own number of threads; a thread pool that was made before a fork does not work after it.
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", PARENT, str(os.getpid()), server, *plugins],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "OMP_NUM_THREADS": "1"},
            process_group=0, bufsize=0,
        )  # fmt: skip
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.stdin, self.stdout, self.unread = self.process.stdin, self.process.stdout, b""

    def send(self, order: RunOrder) -> None:
        """Start a run."""
        self._write(asdict(order))

    def stop(self) -> None:
        """Ask all runs to write a checkpoint and to end."""
        self._write({"stop": True})

    def receive(self) -> list[RunEvent]:
        """Return new events; wait for them for a short while."""
        if not select.select([self.stdout], [], [], POLL)[0]:
            return []
        received = os.read(self.stdout.fileno(), 2**16)
        if not received:
            raise StudyError(DIED)
        *lines, self.unread = (self.unread + received).split(b"\n")
        return [RunEvent(**json.loads(line)) for line in lines]

    def close(self, *, at_once: bool) -> None:
        """End the server: when its runs have ended, or with them at once."""
        if at_once and self.process.returncode is None:  # its id may be reused after its end
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.stdin.close()
        self.process.wait()
        self.stdout.close()

    def _write(self, message: dict[str, Any]) -> None:
        rest = memoryview((json.dumps(message) + "\n").encode())
        try:
            while rest:
                rest = rest[self.stdin.write(rest) :]
        except BrokenPipeError as error:
            raise StudyError(DIED) from error
