"""Provenance: plugin files as they are at every start, and the command that repeats a study."""

from __future__ import annotations

import hashlib
import json
import shlex
from pathlib import Path

import pytest

from attnlab.errors import StudyError
from attnlab.studies.ledger.database import Ledger
from attnlab.studies.plan import provenance
from attnlab.studies.plan.provenance import VERSIONS, collect_provenance, write_command
from attnlab.studies.study import Study

from ..samples import study


def test_every_start_records_the_plugin_files_as_they_are_then(tmp_path: Path) -> None:
    file, ledger = tmp_path / "own.py", Ledger(tmp_path / "ledger.sqlite")
    once = Study(study().design, plugins=(str(file),))
    with pytest.raises(
        StudyError, match=r"cannot read .*own\.py.*: No such file or directory; give --plugin an existing"
    ):
        once.enter(tmp_path, ledger, 1)
    assert ledger.events("started") == []
    for text in ("# one\n", "# é two\n"):
        file.write_text(text, encoding="utf-8")
        once.enter(tmp_path, ledger, 1)
    noted = [json.loads(said)["plugins"] for said in ledger.events("started")]
    ledger.close()
    assert [[(one["file"], one["text"]) for one in some] for some in noted] == [
        [("own.py", "# one\n")], [("own.py", "# é two\n")]
    ]  # fmt: skip
    assert noted[1][0]["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()


def test_the_command_repeats_a_study_with_all_its_options() -> None:
    command = write_command(
        "my study.toml", "out", "smoke", {"seeds": [1, 2], "phases.0.clip": None}, {"text": "a b.txt"}, ["own.py"],
        ["wandb"], threads=2, workers=1,
    )  # fmt: skip
    assert shlex.split(command) == [
        "attnlab", "run", "my study.toml", "--out", "out", "--budget", "smoke", "--threads", "2", "--data",
        "text=a b.txt", "--set", "seeds=[1, 2]", "--set", "phases.0.clip=none", "--plugin", "own.py", "--track",
        "wandb",
    ]  # fmt: skip
    assert write_command("quickstart", "out") == "attnlab run quickstart --out out"


def test_provenance_has_versions_and_no_commit_outside_of_a_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provenance, "__file__", str(tmp_path / "provenance.py"))
    facts = collect_provenance()
    assert {*VERSIONS, "python", "host", "processor", "cores"} <= set(facts)
    assert facts["commit"] is None
