"""`attnlab mechanisms` shows the whole catalog, to people and to programs."""

import json

import pytest

import attnlab
from attnlab.cli import main


def test_every_entry_is_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mechanisms"]) == 0
    rows = capsys.readouterr().out.splitlines()[1:]
    for entry, row in zip(attnlab.mechanisms.CATALOG.values(), rows, strict=True):
        for cell in (entry.name, entry.line, entry.paper, entry.sentence):
            assert cell in row


def test_specimens_are_marked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mechanisms"]) == 0
    marked = [row for row in capsys.readouterr().out.splitlines() if "Specimen: " in row]
    assert len(marked) == sum(entry.specimen for entry in attnlab.mechanisms.CATALOG.values())
    assert marked


def test_json_lines_can_be_parsed_back(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mechanisms", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [entry["name"] for entry in shown] == list(attnlab.mechanisms.CATALOG)
    for entry in shown:
        assert attnlab.mechanisms.parse_line(entry["line"]) == attnlab.mechanisms.CATALOG[entry["name"]].mechanism


def test_stages_show_their_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mechanisms", "--stages"]) == 0
    out = capsys.readouterr().out
    assert "alpha=0.5, on=v, activation=relu" in out
    assert main(["mechanisms", "--stages", "--json"]) == 0
    assert {one["name"] for one in json.loads(capsys.readouterr().out)} == set(attnlab.mechanisms.REGISTRY)
