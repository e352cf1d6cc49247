"""`attnlab mechanisms` shows the whole catalog, to people and to programs."""

import itertools
import json
from pathlib import Path

import pytest

import attnlab
from attnlab.cli import main


def test_every_entry_is_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mechanisms"]) == 0
    rows = {row.split()[0]: row for row in capsys.readouterr().out.splitlines()[1:]}
    assert set(rows) == set(attnlab.mechanisms.CATALOG)
    for entry in attnlab.mechanisms.CATALOG.values():
        for cell in (entry.name, entry.line, entry.slot, entry.paper, entry.sentence):
            assert cell in rows[entry.name]


def test_entries_are_grouped_by_the_slot_in_which_they_differ(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mechanisms", "--json"]) == 0
    slots = {entry["name"]: entry["slot"] for entry in json.loads(capsys.readouterr().out)}
    expected = {
        "additive": "score", "sparsemax": "weights", "rope": "positions", "sliding-window": "mask",
        "forgetting": "forget", "gated-delta-net": "delta", "differential": "heads", "linear-attention": "features",
        "gemma-hybrid": "layers", "qwen3-next-like": "layers",
    }  # fmt: skip
    assert expected.items() <= slots.items()
    assert main(["mechanisms"]) == 0
    shown = [slots[row.split()[0]] for row in capsys.readouterr().out.splitlines()[1:]]
    assert len(set(shown)) == 1 + sum(one != other for one, other in itertools.pairwise(shown))


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


@pytest.mark.usefixtures("own_stages")
def test_stages_of_ones_own_are_listed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    plugin = tmp_path / "mine.py"
    plugin.write_text(
        "from dataclasses import dataclass\nimport attnlab\n@attnlab.stage('mine')\n@dataclass(frozen=True)\n"
        "class Mine(attnlab.Weights):\n    'max(s, 0), by me.'\n"
        "    def __call__(self, scores, n, p): return scores.relu()\n"
    )
    assert main(["mechanisms", "--plugin", str(plugin)]) == 0
    (row,) = [row for row in capsys.readouterr().out.splitlines() if row.startswith("mine ")]
    assert "max(s, 0), by me." in row
    assert main(["mechanisms", "--plugin", str(tmp_path / "none.py")]) == 2
