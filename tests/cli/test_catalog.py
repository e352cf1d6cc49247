"""`attnlab mechanisms --page` computes, checks and times mechanisms, prints a row for each and writes one page."""

import dataclasses
from pathlib import Path

import pytest

from attnlab.cli import main
from attnlab.mechanisms import CATALOG
from attnlab.reports.catalog import catalog_results
from attnlab.reports.catalog.agreement import Agreement
from tests.reports.catalog.conftest import SMALL


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog_results, "PLAN", SMALL)


def test_every_mechanism_has_a_row_and_the_page_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "not" / "there" / "yet"
    assert main(["mechanisms", "--page", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "4 of 4 agree with the fp64 reference" in out
    assert "1 of 2 audited are sound; not: leaking-mask" in out
    assert str(folder / "mechanisms.html") in out
    page = (folder / "mechanisms.html").read_text(encoding="utf-8")
    for name in SMALL.names:
        (row,) = [line for line in out.splitlines() if line.split()[:1] == [name]]
        assert row.endswith("yes")
        assert CATALOG[name].line in page
        assert CATALOG[name].sentence in page.replace("&#39;", "'")


def test_a_disagreement_is_shown_and_is_the_status(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        catalog_results, "measure_agreement", lambda *_: Agreement(error=0.5, reference_error=1e-7, rounding=1e-7)
    )
    monkeypatch.setattr(catalog_results, "PLAN", dataclasses.replace(SMALL, names=("baseline",), growing=("baseline",)))
    assert main(["mechanisms", "--page", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "0 of 1 agree" in out
    assert out.count("NO") == 1
    assert "disagrees" in (tmp_path / "mechanisms.html").read_text(encoding="utf-8")


def test_an_audit_that_lets_a_specimen_pass_is_the_status(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only = dataclasses.replace(SMALL, names=("baseline",), growing=("baseline",), checks=("gradient flow",))
    monkeypatch.setattr(catalog_results, "PLAN", only)
    assert main(["mechanisms", "--page", str(tmp_path)]) == 1


def test_a_folder_that_cannot_be_written_is_refused_before_the_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(catalog_results, "run_catalog")
    (tmp_path / "file").touch()
    assert main(["mechanisms", "--page", str(tmp_path / "file")]) == 2
    assert "is a file" in capsys.readouterr().err


def test_what_acts_elsewhere_is_said_and_not_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("baseline", "shared-qk", "output-penalty", "token-dropout")
    monkeypatch.setattr(catalog_results, "PLAN", dataclasses.replace(SMALL, names=names))
    assert main(["mechanisms", "--page", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "2 of 2 agree" in out
    assert "2 act only in a model or on the loss" in out
    assert "as the baseline here: acts in a model" in out
    assert "as the baseline here: acts on the loss" in (tmp_path / "mechanisms.html").read_text(encoding="utf-8")
