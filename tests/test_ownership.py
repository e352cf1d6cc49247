"""An output folder that other users control is refused by whatever writes into it, and can be allowed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from attnlab.errors import AttnlabError
from attnlab.ownership import TRUST, describe_risk
from attnlab.reports.study.files import make_place
from attnlab.studies.ledger.database import Ledger
from attnlab.training.record.lock import lock_folder


def lock(folder: Path) -> None:
    """Lock a folder, as a run and a study do first."""
    with lock_folder(folder):
        pass


def open_ledger(folder: Path) -> None:
    """Make a ledger in a folder."""
    Ledger(folder / "ledger.sqlite").close()


WRITERS: list[Callable[[Path], object]] = [lock, open_ledger, make_place]


@pytest.mark.parametrize("write", WRITERS)
def test_a_folder_that_everybody_can_write_is_refused(
    write: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(AttnlabError, match=f"can be written by every user; run 'chmod o-w .*set {TRUST}=1"):
        write(tmp_path)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setenv(TRUST, "1")
    write(tmp_path)


@pytest.mark.parametrize("write", WRITERS)
def test_a_folder_or_a_file_of_another_user_is_refused(
    write: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 12345)
    if tmp_path.stat().st_uid == 0:
        os.chown(tmp_path, 54321, -1)
    with pytest.raises(AttnlabError, match="belongs to another user"):
        write(tmp_path)


def test_what_is_safe_is_not_asked_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert describe_risk(tmp_path) == describe_risk(tmp_path / "new" / "folder") == ""
    tmp_path.chmod(0o775)  # as umask 002 makes it
    assert describe_risk(tmp_path) == ""
    tmp_path.chmod(0o1777)  # as /tmp
    assert describe_risk(tmp_path / "new") == ""
    tmp_path.chmod(0o777)
    assert "can be written by every user" in describe_risk(tmp_path / "new" / "folder")
    if os.geteuid() == 0:
        tmp_path.chmod(0o755)
        os.chown(tmp_path, 54321, -1)
        assert describe_risk(tmp_path) == ""  # a mounted folder in a container
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
        assert "belongs to another user (id 54321)" in describe_risk(tmp_path)
