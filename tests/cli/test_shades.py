"""Shades grow with the weight, and are letters where a terminal has no blocks."""

import io
import math
import sys

import pytest

from attnlab.cli.shades import BLOCKS, LETTERS, format_weight, shade


def test_more_weight_is_darker() -> None:
    shades = [shade(part) for part in (0.0, 0.25, 0.5, 0.75, 1.0)]
    assert shades == [mark * 2 for mark in BLOCKS]
    assert shade(0.03) == BLOCKS[1] * 2
    assert shade(-1.0) == BLOCKS[-1] * 2
    assert shade(7.0) == BLOCKS[-1] * 2


def test_letters_stand_in_for_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    assert shade(1.0) == LETTERS[-1] * 2


def test_a_cell_has_its_number() -> None:
    assert format_weight(0.99) == "██ 0.990"
    assert format_weight(-1.0, largest=2.0) == "▒▒ -1.000"
    assert format_weight(0.0, largest=0.0) == "   0.000"
    assert format_weight(math.nan).strip() == "–"
