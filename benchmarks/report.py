"""How large the report of a study of ten arms and ten seeds is, and how long a browser takes to open it."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from attnlab.reports.study.contents import collect_contents
from attnlab.reports.study.page import render_page
from attnlab.studies.answers.study_folder import open_record
from benchmarks.table import Row, Table, at_most, compared
from tests.reports.study.made import large

BYTES, SECONDS = 5e6, 2.0
ROUNDS = 5
LOADED = "performance.getEntriesByType('navigation')[0].loadEventEnd / 1000"


def table() -> Table:
    """Write the report of a made-up study, and open it several times in a fresh page."""
    title = "The report of 10 arms × 10 seeds, in headless Chromium: the best of five"
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        with open_record(large(folder)) as record:
            text = render_page(collect_contents(record))
        page = folder / "report.html"
        page.write_text(text, encoding="utf-8")
        rows = [Row("report.html", "memory", float(len(text.encode())), "the limit", BYTES, at_most(1))]
        chromium, notes = shutil.which("chromium"), []
        if chromium is None:
            notes.append("Opening was not measured: there is no chromium here.")
        else:
            seconds = seconds_to_open(page, chromium)
            rows.append(Row("until it is loaded", "time", seconds, "the limit", SECONDS, at_most(1)))
        return compared(title, rows, notes)


def seconds_to_open(page: Path, chromium: str) -> float:
    """Return how long a browser takes until a page is loaded."""
    # Imported here because the other tables have no need of it.
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        found = []
        for _ in range(ROUNDS):
            tab = browser.new_page()
            tab.goto(page.as_uri(), wait_until="load")
            tab.wait_for_timeout(100)
            found.append(float(tab.evaluate(LOADED)))
            tab.close()
        browser.close()
    return min(found)
