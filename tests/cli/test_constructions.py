"""A construction as printed: shades grow with the weight, letters replace blocks, and many keys are cut short."""

import io
import json
import math
import re
import sys
from pathlib import Path

import pytest
import torch

from attnlab import construct
from attnlab.cli import main
from attnlab.cli.constructions import BLOCKS, LETTERS, format_weight, print_construction, shade


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


def test_many_keys_are_cut_short(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "many.json"
    path.write_text(json.dumps([[float(i == j) for j in range(30)] for i in range(30)]), encoding="utf-8")
    assert main(["construct", "select", "--index", "3", "--keys", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "and 10 more keys, together: q = the key" in shown
    assert "… (30 numbers)" in shown
    assert main(["construct", "select-all", "--keys", str(path)]) == 0


def test_numbers_of_rounding_are_printed_as_0(capsys: pytest.CaptureFixture[str]) -> None:
    for seed in range(10):
        draw = torch.randn(6, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
        keys = torch.linalg.qr(draw).Q
        between = torch.cat([keys, keys[:2].mean(0, keepdim=True)])
        for result in (
            construct.argmax(keys, 50 * keys[0]), construct.select(keys, 0), construct.place_key(keys, keys[0]),
            construct.average(between, [0, 1]), construct.extract(keys[:, :2], keys[:, 2:4]),
        ):  # fmt: skip
            print_construction(result)
            print(result.facts())
    shown = capsys.readouterr().out
    assert not re.search(r"e[-−]1[5-9]", shown)
    assert "-0.000" not in shown
