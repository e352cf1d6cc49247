"""A chart is drawn once, and again if its cached drawing is damaged."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from attnlab.charts import drawing_cache
from attnlab.charts.drawing_cache import load_or_draw


@pytest.fixture
def drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path))
    return []


def draw(drawn: list[str], source: str) -> bytes:
    def make() -> bytes:
        drawn.append(source)
        return f"<svg>{source}</svg>".encode()

    return load_or_draw(source, make)


def test_the_same_source_is_drawn_once(drawn: list[str]) -> None:
    assert draw(drawn, "a") == draw(drawn, "a") == b"<svg>a</svg>"
    assert draw(drawn, "b") == b"<svg>b</svg>"
    assert drawn == ["a", "b"]


@pytest.mark.parametrize("damage", [b"", b"short", b"x" * 100])
def test_a_damaged_file_is_drawn_again(drawn: list[str], tmp_path: Path, damage: bytes) -> None:
    draw(drawn, "a")
    (file,) = (tmp_path / "charts").iterdir()
    file.write_bytes(damage)
    assert draw(drawn, "a") == draw(drawn, "a") == b"<svg>a</svg>"
    assert drawn == ["a", "a"]


def test_a_changed_drawing_is_drawn_again(drawn: list[str], tmp_path: Path) -> None:
    draw(drawn, "a")
    (file,) = (tmp_path / "charts").iterdir()
    file.write_bytes(file.read_bytes().replace(b"<svg>", b"<bad>"))
    assert draw(drawn, "a") == b"<svg>a</svg>"


def test_without_a_cache_it_is_drawn_every_time(
    drawn: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv("ATTNLAB_CACHE", str(file))
    assert draw(drawn, "a") == draw(drawn, "a") == b"<svg>a</svg>"
    assert drawn == ["a", "a"]


def test_the_oldest_half_goes_when_there_are_too_many(
    drawn: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawing_cache, "MAX_FILES", 4)
    for number, source in enumerate("abcde"):
        draw(drawn, source)
        for file in (tmp_path / "charts").iterdir():
            if file.stat().st_mtime > 10:
                os.utime(file, (number, number))
    assert len(list((tmp_path / "charts").iterdir())) == 3
    drawn.clear()
    draw(drawn, "e")
    assert drawn == []
