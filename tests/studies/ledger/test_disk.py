"""Network file systems are refused before anything is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnlab.errors import StudyError
from attnlab.studies.ledger.database import Ledger

from ..samples import quiet, study


@pytest.mark.parametrize(("kind", "is_refused"), [("nfs4", True), ("fuse.sshfs", True), ("ext4", False)])
def test_network_file_systems_are_refused_and_nothing_is_left_there(
    kind: str, is_refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts, share = tmp_path / "mounts", tmp_path / "my share"
    share.mkdir()
    spelled = str(share).replace(" ", "\\040")
    mounts.write_text(f"none / ext4 rw 0 0\nserver:/x {spelled} {kind} rw 0 0\nbroken\n", encoding="utf-8")
    monkeypatch.setattr("attnlab.studies.ledger.disk.MOUNTS", mounts)
    if is_refused:
        with pytest.raises(StudyError, match=rf"on a network file system \({kind}\).*a folder on a local disk"):
            study().run(share / "out", say=quiet)
        assert list(share.iterdir()) == []
    else:
        Ledger(share / "ledger.sqlite").close()
