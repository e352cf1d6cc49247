"""A trained study that learns, with arms at equal operations and a target: terminal, page, tables and JSON agree."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from attnlab.cli.compare import compare
from attnlab.reports.study.report import write_report
from attnlab.studies.study import Study
from tests.studies.in_process import train_here
from tests.studies.samples import quiet

COPY = "embedded:copy?vocab=16&length=16"
TARGET = 0.8
LEARNABLE: dict[str, Any] = {
    "name": "copying",
    "question": "does hard attention learn to copy?",
    "baseline": "dot",
    "seeds": [1, 2, 3, 4, 5],
    "match": "operations",
    "arms": {"dot": "dot | softmax", "hard": "dot | argmax"},
    "sizes": {"mini": {"architecture": "gpt2", "config": {
        "n_layer": 1, "n_embd": 32, "n_head": 2, "n_inner": 8, "n_positions": 16, "resid_pdrop": 0.0,
        "embd_pdrop": 0.0, "attn_pdrop": 0.0,
    }}},
    "data": {"copy": {"train": COPY, "dev": f"{COPY}&examples=50&seed=1"}},
    "phases": [{
        "name": "copy", "task": "copy", "task_settings": {"vocab": 16, "length": 16, "is_fresh": True}, "data": "copy",
        "smallest": 0.1, "target": TARGET, "precision": "fp32", "segments": [{"steps": 60, "batch": 32}],
        "optimizer": {"lr": 1e-2, "betas": [0.9, 0.95]}, "schedule": {"kind": "cosine"},
    }],
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the study, trained in this process."""
    monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path / "cache"))
    train_here(monkeypatch)
    monkeypatch.setattr(Study, "_audit_arms", lambda *_: {})  # which take longer than all else here
    assert Study.of(LEARNABLE).run(tmp_path / "study", say=quiet).is_whole
    return tmp_path / "study"


def test_terminal_page_tables_and_json_agree(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = write_report(folder).read_text(encoding="utf-8")
    capsys.readouterr()
    assert compare([str(folder)], as_json=True) == 0
    recorded = json.loads(capsys.readouterr().out)
    assert compare([str(folder)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    (answer,) = recorded["answers"]
    assert answer["verdict"] == "WORSE BY AT LEAST 0.1 AT EQUAL OPERATIONS, AT SHARED SETTINGS"
    targets = {target["arm"]: target["verdict"] for target in recorded["targets"]}
    assert targets == {"dot": f"REACHES {TARGET}", "hard": f"DOES NOT REACH {TARGET}"}
    (matched,) = [note for note in answer["notes"] if note.startswith("hard trains")]
    for text in (answer["verdict"], matched, *targets.values()):
        assert text in shown
        assert text in page
    assert {row["arm"]: row["verdict"] for row in read_table(folder, "targets")} == targets
    assert answer["verdict"] in {row["verdict"] for row in read_table(folder, "summary")}


def read_table(folder: Path, name: str) -> list[dict[str, str]]:
    """Return the rows of a table that the report wrote."""
    return list(csv.DictReader((folder / "tables" / f"{name}.csv").read_text(encoding="utf-8").splitlines()))
