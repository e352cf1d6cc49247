"""Reports as tests read them: the elements of a page, the contents of a folder, the rows of a table."""

import csv
from html.parser import HTMLParser
from pathlib import Path

from attnlab.reports.study.contents import Contents, collect_contents
from attnlab.studies.answers.study_folder import open_record

VOID = {"meta"}


class Elements(HTMLParser):
    """Collects every element and attribute, and checks that what is opened is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.scripts: list[tuple[str | None, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append((dict(attrs).get("type"), ""))

    def handle_data(self, data: str) -> None:
        if self.open[-1:] == ["script"]:
            kind, text = self.scripts.pop()
            self.scripts.append((kind, text + data))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def contents(folder: Path) -> Contents:
    with open_record(folder) as record:
        return collect_contents(record)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
