"""Rows come out whole where there is no terminal, and fitted, with brackets intact, where there is one."""

import re
import sys

import pytest

from attnlab.cli.tables import print_entries, print_table
from attnlab.cli.wrapping import wrap_terminals

COLUMNS = ("name", "line")
ROWS = [("baseline", "dot | softmax"), ("odd", "[bold] " + "long " * 30 + "end")]


def test_without_a_terminal_every_row_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(COLUMNS, ROWS)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "name      line"
    assert lines[1] == "baseline  dot | softmax"
    assert lines[2] == f"odd       {ROWS[1][1]}"


def test_a_table_without_rows_shows_its_columns(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(COLUMNS, [])
    assert capsys.readouterr().out == "name  line\n"


def test_in_a_terminal_rows_fit_and_brackets_stay(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    with wrap_terminals():
        print_entries(COLUMNS, ROWS)
        print_table(("length", "time"), [("8", "1.25 ms")])
        print_table(("length", *"abcdefgh"), [("8", *["1.25 ms"] * 8)])
    out = capsys.readouterr().out
    assert "length  time\n8       1.25 ms\n" in out
    assert "length 8, a 1.25 ms, b 1.25 ms" in out
    assert not re.search(r"1\.25\n", out)
    assert "baseline" in out
    assert "[bold]" in out
    assert max(len(line) for line in out.splitlines()) <= 60
