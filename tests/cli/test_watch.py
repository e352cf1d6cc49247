"""`attnlab watch` refuses a wrong request in one message, and ends with status 0 on Ctrl-C."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from attnlab.cli import main
from attnlab.reports.watch import WatchServer
from tests.studies.moments import Moment, evaluation, update, write
from tests.studies.samples import study


@pytest.fixture
def moment(tmp_path: Path) -> Iterator[Moment]:
    """Make a study with one run that has ended, one that is going and others that wait."""
    found = Moment(tmp_path, study())
    found.hold()
    found.plan()
    found.end("dot", 1, 0.5)
    write(found.begin("bypass", 1), update(10, 3.0, 1.0) + update(20, 2.0, 2.0) + evaluation(20, 0.25))
    yield found
    found.ledger.close()


def test_a_wrong_request_is_one_message(
    tmp_path: Path, moment: Moment, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    (tmp_path / "empty").mkdir()
    for folder, said in (("empty", "holds no study"), ("nothing", "is no folder")):
        assert main(["watch", str(tmp_path / folder)]) == 2
        assert said in capsys.readouterr().err
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["watch", str(moment.folder), "--port", str(port)]) == 2
    assert f"cannot serve on port {port}: Address already in use; leave --port out" in capsys.readouterr().err
    assert main(["watch", str(moment.folder), "--port", "70000"]) == 2


def test_ctrl_c_ends_it_with_status_0(
    moment: Moment, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(WatchServer, "serve_forever", lambda window: signal.raise_signal(signal.SIGINT))
    monkeypatch.setattr("webbrowser.open", lambda address: False)
    assert main(["watch", str(moment.folder), "--open"]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("http://127.0.0.1:")
    assert "no browser was found" in shown.out
    assert shown.err == ""
