"""Plugin files are exported only with a model that needs them, under a name that is free."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from attnlab.errors import RequestError
from attnlab.reports.card import StageFile, find_stage_files
from attnlab.reports.card import stage_files as module

from ...studies.moments import Moment


def test_a_file_of_the_export_is_not_overwritten(tmp_path: Path) -> None:
    source = tmp_path / "source" / "own.py"
    source.parent.mkdir()
    source.write_text("# own\n", encoding="utf-8")
    file = StageFile(source, "0", "")
    file.copy_to(tmp_path)
    assert (tmp_path / "own.py").read_text(encoding="utf-8") == "# own\n"
    with pytest.raises(RequestError, match=r"own\.py has the name of a file of the export; rename it"):
        file.copy_to(tmp_path)


def test_a_model_without_stages_of_the_user_needs_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "mechanism_of", lambda model: "dot | softmax")
    restored: Any = SimpleNamespace(model=None)
    assert find_stage_files(restored, tmp_path, []) == []
    assert find_stage_files(restored, tmp_path, ["not-read.py"]) == []


def test_a_file_that_changed_since_the_study_has_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "mechanism_of", lambda model: "dot | softmax")
    monkeypatch.setattr(module, "hash_stages", lambda line, plugins: {"plugin 0": "x"})
    moment = Moment(tmp_path)
    moment.plan()
    moment.ledger.add_event("started", '{"plugins": [{"file": "own.py", "sha256": "0", "text": ""}]}')
    moment.ledger.close()
    (tmp_path / "own.py").write_text("# own\n", encoding="utf-8")
    restored: Any = SimpleNamespace(model=None)
    folders = [tmp_path / "runs" / moment.run("bypass", 1).id, tmp_path / "runs" / "of no study"]
    notes = [find_stage_files(restored, folder, [str(tmp_path / "own.py")])[0].note for folder in folders]
    assert notes == ["own.py has changed since the study was run: it may compute something else", ""]
