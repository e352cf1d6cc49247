"""The command line prints text: pages, styles and scripts stand in `reports`."""

from pathlib import Path

import attnlab.cli

FOLDER = Path(attnlab.cli.__file__).parent


def test_cli_has_no_file_of_a_page() -> None:
    assert [path.name for path in FOLDER.rglob("*") if path.suffix in (".html", ".css", ".js")] == []


def test_cli_has_no_markup_in_its_code() -> None:
    marks = ("<html", "<div", "<script", "<style", "<svg", "<!doctype")
    found = [
        f"{path.name}: {mark}"
        for path in FOLDER.rglob("*.py") for mark in marks if mark in path.read_text(encoding="utf-8").lower()
    ]  # fmt: skip
    assert found == []
