"""A run on a node: what is refused there, how it is stopped, and which folders are removed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from attnlab.checksums import unseal_json
from attnlab.studies.run import node

from ..samples import study


def test_a_folder_that_was_sent_says_where_things_are_there(tmp_path: Path) -> None:
    config = study().plan()[0].run.config
    file = tmp_path / node.RUN / "config.json"
    file.parent.mkdir()
    file.write_text(json.dumps(config), encoding="utf-8")
    errand = {"id": "1", "config": config, "shipped": [("start", "checkpoint", ":best")]}
    order = node.prepare_order(errand, tmp_path)
    assert order.config["start"]["checkpoint"] == f"{tmp_path}/checkpoint:best"
    assert order.folder == str(tmp_path / node.RUN)
    assert unseal_json(file.read_bytes()) == order.config


def test_another_version_is_named() -> None:
    assert node.compare_versions(node.get_versions(), node.get_versions()) == ""
    assert node.compare_versions({"torch": "2.13.0"}, {"torch": "2.12.0"}) == "torch 2.12.0 where the study has 2.13.0"


def test_a_process_that_is_not_the_runs_any_more_is_left_alone() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, process_group=0)
    node.stop_process(child.pid, os.getpgid(0))
    assert child.poll() is None
    node.stop_process(child.pid, child.pid)
    assert child.wait() == -15
    node.stop_process(child.pid, child.pid)
    assert child.stdin is not None
    child.stdin.close()


def test_folders_of_killed_runs_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(node, "ABANDONED", -1.0)
    left = tmp_path / f"{node.PREFIX}left"
    left.mkdir()
    (left / "lock").touch()
    with node.make_scratch() as held:
        node.remove_abandoned()
        assert held.exists()
    assert list(tmp_path.iterdir()) == []
