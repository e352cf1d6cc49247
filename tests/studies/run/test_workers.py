"""Local workers: a server that dies is one clear error."""

from __future__ import annotations

import pytest

from attnlab.errors import StudyError
from attnlab.studies.run.workers import LocalWorkers


def test_a_server_that_dies_is_one_sentence() -> None:
    workers = LocalWorkers()
    workers.process.kill()
    workers.process.wait()
    with pytest.raises(StudyError, match="has died; the same command resumes"):
        workers.receive()
    with pytest.raises(StudyError, match="has died"):
        workers.stop()
    workers.close(at_once=True)
