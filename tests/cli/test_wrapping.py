"""On a terminal of any width lines are broken between words only, and nothing is lost; a pipe gets whole lines."""

from __future__ import annotations

import functools
import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import attnlab.audits
from attnlab.cli import doctor, main
from attnlab.cli.wrapping import wrap, wrap_terminals
from attnlab.mechanisms import Mechanism

from ..studies.folders import DOT, write_folder

WIDTHS = (40, 60, 80, 100, 132)
WORSE = [0.45, 0.52, 0.49, 0.5, 0.44]
TABLE = "arm,seed,accuracy,f1\n" + "".join(
    f"{arm},{seed},{0.8 + shift + seed / 100},{0.7 + shift + seed / 90}\n"
    for arm, shift in (("baseline", 0.0), ("a-long-name-of-an-arm", 0.05)) for seed in range(1, 6)
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("wrapping")
    (path / "table.csv").write_text(TABLE)
    write_folder(path / "study", {"dot": DOT, "better": WORSE})
    return path


COMMANDS = {
    "verdicts": ["compare", "study"], "plan": ["plan", "study"], "study": ["judge", "study"],
    "table": ["judge", "table.csv"], "audit": ["audit", "dot | softmax | mask(after)", "--only", "prefix", "--causal"],
    "audits": ["audit", "dot", "cosine | relu(divide=n) | bypass(alpha=0.5)", "--only", "value path"],
    "recipes": ["recipes"], "mechanisms": ["mechanisms"], "stages": ["mechanisms", "--stages"], "doctor": ["doctor"],
    "explain": ["explain", "cosine | relu(divide=n)"], "error": ["explain", "an error whose line is long | " * 6],
}  # fmt: skip

ENTRIES = ("mechanisms", "stages", "doctor")


@pytest.mark.parametrize("name", COMMANDS)
def test_no_word_is_split_or_lost_at_any_width(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    _compute_once(monkeypatch)
    main(COMMANDS[name])
    whole = "".join(capsys.readouterr())
    for stream in (sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    for width in WIDTHS:
        monkeypatch.setenv("COLUMNS", str(width))
        main(COMMANDS[name])
        out, err = capsys.readouterr()
        shown = out + re.sub(r"\r\x1b\[K[^\r]*", "", err)
        known, present = (Counter(_split_words(text)) for text in (whole, shown))
        assert set(present) <= set(known)
        lost = known - present
        # A narrow list of entries omits the names of its columns.
        assert not (lost if name not in ENTRIES else lost - Counter(_split_words(whole.partition("\n")[0])))
        for line in shown.splitlines():
            assert len(line) <= width or " " not in line.strip() or line.startswith("    "), line


def _split_words(text: str) -> list[str]:
    return [word for part in text.split() if (word := part.strip(",;"))]


def _compute_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep audits, whose seconds would differ, and what the doctor finds."""
    audits, observe, audit = {}, functools.cache(doctor.observe), attnlab.audits.audit

    def audit_once(subject: Mechanism, **options: Any) -> attnlab.audits.Audit:
        if subject not in audits:
            audits[subject] = audit(subject, **options)
        return audits[subject]

    monkeypatch.setattr(attnlab.audits, "audit", audit_once)
    monkeypatch.setattr(doctor, "observe", observe)


def test_a_label_keeps_its_text_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    assert wrap("  kernel  blockwise, tile by tile, again") == "  kernel  blockwise, tile by\n          tile, again"
    assert wrap("a sentence that is longer than that") == "a sentence that is longer than\n  that"
    assert wrap("  an indented text keeps its indentation") == "  an indented text keeps its\n  indentation"


def test_commands_control_sequences_and_json_stay_whole(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "24")
    for line in (
        "  attnlab run study.toml --out here",
        "\r\x1b[K" + "measuring " * 5,
        "/a/path/that/is/longer/than/it",
    ):
        assert wrap(line) == line
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(["explain", "dot", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["asked"] == "dot"


def test_text_that_continues_a_line_is_not_wrapped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "10")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    with wrap_terminals():
        print("begun", end=" ")
        print("and then continued")
        print("a line with words")
    print("a line after that")
    assert capsys.readouterr().out == "begun and then continued\na line\n  with\n  words\na line after that\n"
