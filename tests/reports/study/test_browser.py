"""The page in a browser: it draws every chart under its own policy, asks for nothing, and runs no text of a dataset."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from attnlab.reports.study.contents import collect_contents
from attnlab.reports.study.page import render_page
from attnlab.studies.answers.study_folder import open_record

from .made import HOSTILE, large

api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium here: apt-get install chromium")

ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run",
]  # fmt: skip
CHARTS = "figure[data-chart]"
LARGEST = 5_000_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with api.sync_playwright() as started:
        found = started.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield found
        found.close()


@pytest.fixture
def path(folder: Path) -> Path:
    return folder / "report.html"


class Visit:
    """A page that was opened without a network, what it asked for, and what it complained of."""

    def __init__(self, browser: Any, path: Path, **settings: Any) -> None:
        self.asked: list[str] = []
        self.complaints: list[str] = []
        self.context = browser.new_context(**settings)
        self.context.set_offline(True)
        self.page = self.context.new_page()
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", lambda said: self.complaints.append(f"{said.type}: {said.text}"))
        self.page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        self.page.goto(path.as_uri())

    def draw_all(self) -> int:
        """Bring every chart into sight and wait until it is live; return how many there are."""
        charts = self.page.locator(CHARTS)
        for number in range(charts.count()):
            charts.nth(number).scroll_into_view_if_needed()
            self.page.wait_for_selector(f'figure[data-chart="chart-{number}"][data-drawn]')
        return int(charts.count())


@pytest.fixture
def visit(browser: Any, path: Path) -> Iterator[Visit]:
    found = Visit(browser, path)
    yield found
    found.context.close()


def test_every_chart_is_drawn_and_nothing_is_asked_for(visit: Visit, path: Path) -> None:
    num = visit.draw_all()
    assert num >= 6
    assert visit.page.locator('figure[data-drawn="live"] svg').count() == num
    assert visit.asked == [path.as_uri()]
    assert visit.complaints == []


def test_the_policy_forbids_what_is_not_its_own(visit: Visit) -> None:
    script = "document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.evil = 1'}))"
    visit.page.evaluate(f"() => {{ {script} }}")
    assert visit.page.evaluate("() => window.evil") is None
    assert any("Content Security Policy" in said for said in visit.complaints)


def test_text_of_a_dataset_stays_text(visit: Visit) -> None:
    assert HOSTILE in visit.page.locator("#samples td").first.inner_text()
    assert HOSTILE in visit.page.locator("h1").inner_text()


def arms(visit: Visit) -> list[str]:
    return list(visit.page.locator("#results-table tbody th").all_inner_texts())


def test_the_table_sorts_by_click_and_by_key(visit: Visit) -> None:
    header = visit.page.locator("#results-table thead th", has_text="mean")
    header.locator("button").click()
    assert arms(visit) == ["worse", "dot", "better", "leaking"]
    assert header.get_attribute("aria-sort") == "ascending"
    header.locator("button").press("Enter")
    assert arms(visit) == ["leaking", "better", "dot", "worse"]
    assert header.get_attribute("aria-sort") == "descending"
    # What has no value stays last both ways.
    difference = visit.page.locator("#results-table thead th", has_text="difference").locator("button")
    for expected in (["worse", "better"], ["better", "worse"]):
        difference.click()
        assert arms(visit)[:2] == expected


def test_a_phone_needs_no_sideways_scrolling(browser: Any, path: Path) -> None:
    visit = Visit(browser, path, viewport={"width": 390, "height": 844}, is_mobile=True)
    visit.draw_all()
    assert visit.page.evaluate("() => document.documentElement.scrollWidth") == 390
    visit.context.close()


def test_a_dark_scheme_is_dark_and_so_are_its_charts(browser: Any, path: Path) -> None:
    visit = Visit(browser, path, color_scheme="dark")
    visit.draw_all()
    paper = "() => getComputedStyle(document.body).backgroundColor"
    ink = "() => getComputedStyle(document.querySelector('figure svg text')).fill"
    assert visit.page.evaluate(paper) == "rgb(20, 23, 27)"
    assert visit.page.evaluate(ink) == "rgb(228, 231, 234)"
    visit.context.close()


def test_without_scripts_every_chart_is_a_picture(browser: Any, path: Path) -> None:
    visit = Visit(browser, path, java_script_enabled=False)
    charts = visit.page.locator(CHARTS)
    assert charts.count() >= 6
    for number in range(charts.count()):
        assert charts.nth(number).locator("svg").bounding_box()["width"] > 100
    visit.context.close()


def test_ten_arms_of_ten_seeds_stay_small_and_are_drawn(browser: Any, tmp_path: Path) -> None:
    with open_record(large(tmp_path)) as record:
        text = render_page(collect_contents(record))
    assert len(text.encode()) < LARGEST
    (tmp_path / "report.html").write_text(text, encoding="utf-8")
    visit = Visit(browser, tmp_path / "report.html")
    visit.draw_all()
    assert visit.complaints == []
    visit.context.close()
