"""Answers over sizes, horizons and tasks: the same on the page, in tables, in the terminal and in JSON."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from attnlab.cli.compare import compare
from attnlab.reports.study.report import write_report
from attnlab.studies.answers.study_folder import open_record
from tests.studies.joint import horizons, three_sizes, two_tasks, write_joint

GAINS = {"small": 0.3, "medium": 0.2, "large": 0.1, "recall@2": 0.3, "recall@4": 0.2, "recall@8": 0.1}


@pytest.mark.parametrize(
    ("plain", "words", "chart"),
    [
        (three_sizes(), "SHRINKS WITH SIZE", "trend-trend-recall-small-medium-large"),
        (horizons(), "GAP CLOSING", "trend-horizons-recall-tiny"),
        (two_tasks(), "BETTER OVERALL", ""),
    ],
)
def test_page_tables_terminal_and_json_agree(
    tmp_path: Path, plain: dict[str, Any], words: str, chart: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_joint(tmp_path, plain, lambda run: GAINS.get(run.size) or GAINS.get(run.phase, 0.2))
    page = write_report(folder).read_text(encoding="utf-8")
    with open_record(folder) as record:
        (answer,) = record.joint_answers
    assert answer.verdict == words
    for text in (words, answer.numbers, answer.reason[1:]):
        assert text in page
    assert f'href="#{words.lower().replace(" ", "-")}"' in page
    assert words in (folder / "tables" / "results.md").read_text(encoding="utf-8")
    (row,) = csv.DictReader((folder / "tables" / "joint.csv").read_text(encoding="utf-8").splitlines())
    assert (row["verdict"], float(row["value"])) == (words, answer.value)
    assert bool(chart) == (folder / "figures" / f"{chart}.png").is_file()
    assert compare([str(folder)]) == 0
    shown = capsys.readouterr().out
    assert words in shown
    assert answer.numbers in shown
    assert compare([str(folder)], as_json=True) == 0
    (recorded,) = json.loads(capsys.readouterr().out)["joint_answers"]
    assert (recorded["verdict"], recorded["value"], recorded["p"]) == (words, answer.value, answer.p)
