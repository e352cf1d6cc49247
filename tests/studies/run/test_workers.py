"""Local workers: a server that dies is one clear error."""

from __future__ import annotations

import sys
from pathlib import Path

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


def test_modules_in_the_current_folder_are_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = {name.partition(".")[0] for name in sys.modules} - {"__main__", "attnlab", "tests", "conftest"}
    hostile = {name for name in {*ours, *sys.stdlib_module_names} if name.isidentifier()}
    for name in hostile:
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'was-run')!r}, 'a').write({name!r} + ' ')\n")
    monkeypatch.chdir(tmp_path)
    workers = LocalWorkers()
    workers.stop()
    workers.close(at_once=False)
    assert len(hostile) > 300
    assert not (tmp_path / "was-run").exists()
    assert workers.process.returncode == 0
