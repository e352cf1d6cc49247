"""A chart becomes the file its ending asks for, and a path that cannot be written is refused in words."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from attnlab.charts import FORMATS, check, save
from attnlab.errors import RequestError

SPEC = {
    "data": {"values": [{"a": 1, "b": 2}, {"a": 2, "b": 3}]},
    "mark": "line",
    "encoding": {
        "x": {"field": "a", "type": "quantitative", "title": "length, tokens"},
        "y": {"field": "b", "type": "quantitative"},
    },
}


def test_svg_is_a_picture_with_its_titles(tmp_path: Path) -> None:
    path = save(SPEC, tmp_path / "chart.svg")
    assert ElementTree.parse(path).getroot().tag.endswith("svg")
    assert "length, tokens" in path.read_text(encoding="utf-8")


def test_png_is_a_png(tmp_path: Path) -> None:
    assert save(SPEC, tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG")


def test_html_opens_offline(tmp_path: Path) -> None:
    page = save(SPEC, tmp_path / "chart.html").read_text(encoding="utf-8")
    assert "length, tokens" in page
    assert not re.search(r"<script[^>]+src=|<link[^>]+href=|@import\s+url", page)


def test_json_is_the_spec_itself(tmp_path: Path) -> None:
    assert json.loads(save(SPEC, str(tmp_path / "chart.json")).read_text(encoding="utf-8")) == SPEC


def test_the_ending_may_be_in_capitals(tmp_path: Path) -> None:
    assert save(SPEC, tmp_path / "CHART.SVG").read_text(encoding="utf-8").startswith("<svg")


@pytest.mark.parametrize("name", ["chart.gif", "chart", "chart.svg.gz"])
def test_an_unknown_ending_names_those_that_work(tmp_path: Path, name: str) -> None:
    with pytest.raises(RequestError) as refused:
        save(SPEC, tmp_path / name)
    for ending in FORMATS:
        assert ending in str(refused.value)
    assert not (tmp_path / name).exists()


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="no folder"):
        check(tmp_path / "missing" / "chart.svg")


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    (tmp_path / "chart.svg").mkdir()
    with pytest.raises(RequestError, match="directory"):
        check(tmp_path / "chart.svg")


def test_a_path_that_cannot_be_opened_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="too long"):
        check(tmp_path / f"{'x' * 300}.svg")


def test_checking_leaves_nothing_behind(tmp_path: Path) -> None:
    check(tmp_path / "chart.svg")
    assert not (tmp_path / "chart.svg").exists()


def test_a_disk_that_fails_is_an_error_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Path, content: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", fail)
    with pytest.raises(RequestError, match="No space left on device"):
        save(SPEC, tmp_path / "chart.json")
