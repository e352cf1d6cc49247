"""A report of everything that a page can show, written once for all tests."""

from pathlib import Path

import pytest

from attnlab.reports import write_report

from .made import whole


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = whole(tmp_path_factory.mktemp("whole"))
    write_report(path)
    return path


@pytest.fixture(scope="session")
def page(folder: Path) -> str:
    return (folder / "report.html").read_text(encoding="utf-8")
