"""`attnlab report`: where the report is, wrong folders, and a run whose report cannot be written."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnlab.cli.report import report_after_run
from attnlab.cli.verbs import main
from attnlab.errors import RequestError
from tests.reports.study.made import BASE, Made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Made(tmp_path).give("dot", BASE[:1]).done()


def test_it_says_where_the_report_is(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(folder)]) == 0
    assert f"the report is {folder / 'report.html'}" in capsys.readouterr().out
    assert (folder / "tables" / "per_seed.csv").exists()


@pytest.mark.parametrize("has_browser", [True, False])
def test_it_is_opened_where_that_is_asked_for(
    has_browser: bool, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened: list[str] = []

    def start(address: str) -> bool:
        opened.append(address)
        return has_browser

    monkeypatch.setattr("webbrowser.open", start)
    assert main(["report", str(folder), "--open"]) == 0
    assert opened == [(folder / "report.html").as_uri()]
    assert has_browser or "no browser was found" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "said"), [("nowhere", "is no folder"), ("", "holds no study")])
def test_what_is_no_study_is_refused(
    name: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    assert main(["report", str(tmp_path / name)]) == 2
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("error", [RequestError("no room"), ZeroDivisionError("no room")])
def test_trouble_after_a_run_is_said_and_costs_nothing(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(folder: str) -> Path:
        raise error

    monkeypatch.setattr("attnlab.reports.write_report", fail)
    report_after_run("study", is_quiet=False)
    shown = capsys.readouterr()
    assert "the report was not written" in shown.err
    assert "no room" in shown.err
    assert shown.out == ""


def test_a_quiet_run_prints_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report_after_run(str(folder), is_quiet=True)
    assert capsys.readouterr().out == ""
    assert (folder / "report.html").exists()
