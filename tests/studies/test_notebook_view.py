"""A study in a notebook: one display during the runs, and every message at its end."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnlab.studies import notebook_view
from attnlab.studies.notebook_view import NotebookView

from ..conftest import NotebookKernel
from .moments import Moment


def test_a_study_shows_one_display(
    tmp_path: Path, notebook_kernel: NotebookKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notebook_view, "SECONDS", 0.0)
    moment = Moment(tmp_path)
    moment.hold()
    view = NotebookView(tmp_path)
    view.say("auditing")
    assert "starting\nauditing" in notebook_kernel.displays[0]
    moment.plan()
    for number in range(20):
        view.say(f"run {number} <ended>")
    assert "0 of " in notebook_kernel.displays[0]
    assert "run 11 " not in notebook_kernel.displays[0]
    view.close()
    assert len(notebook_kernel.displays) == 1
    assert notebook_kernel.displays[0].count("&lt;ended&gt;") == 20
    moment.ledger.close()
