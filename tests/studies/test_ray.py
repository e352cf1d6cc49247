"""A study on a cluster of two nodes, one of which is killed with -9: the ledger is that of a study here.

`make soak` runs this file as a program: `python -m tests.studies.test_ray`.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from attnlab.cli.plugin import load_plugin
from attnlab.errors import StudyError
from attnlab.studies.plan.audit_keys import find_audited_task
from attnlab.studies.plan.installed_arms import InstalledArm
from attnlab.studies.study import Study

from .samples import quiet
from .samples import study as sample
from .test_kills import LARGE, OWN, SMALL, check_same, children_of, finish, is_alive, note_audits, start

pytestmark = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="ray is not installed: attnlab[ray]")
RAY = Path(sys.executable).with_name("ray")
AFTER = """
[[phases]]
name = "again"
after = "recall"
task = "mqar"
task_settings = { vocab = 32, length = 24 }
data = "recall"
smallest = 0.02
precision = "fp32"
[[phases.segments]]
steps = 4
batch = 8

[budgets.smoke]"""
ONE_SEED = SMALL.replace("seeds = [1, 2]", "seeds = [1]")
PHASED = ONE_SEED.replace("\n[budgets.smoke]", AFTER)
CRASHING = """
import os, signal, sys
from dataclasses import dataclass
from attnlab import Weights, stage

@stage("crash")
@dataclass(frozen=True)
class Crash(Weights):
    def __call__(self, scores, n, p):
        if sys.modules["__main__"].__spec__.name == "attnlab.studies.run.server":
            os.kill(os.getpid(), signal.SIGSEGV)
        return scores
"""


class Nodes:
    """A cluster of nodes on this machine, each of one CPU, whose processes are all below this one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.nodes: list[subprocess.Popen[bytes]] = []
        self.address = ""

    def begin(self) -> None:
        """Start the head."""
        self.add("--head", "--port=0", "--include-dashboard=false", f"--temp-dir={self.folder}")
        self.address = self.said(r"--address='([^']+)'")

    def add(self, *more: str) -> None:
        """Start a node, and wait until it is one."""
        command = [str(RAY), "start", "--num-cpus=1", "--object-store-memory=80000000", "--block", *more]
        environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "TMPDIR": str(self.folder)}
        with (self.folder / f"{len(self.nodes)}.log").open("wb") as log:
            self.nodes.append(subprocess.Popen(command, stdout=log, stderr=log, env=environment))
        self.said("(block forever)")

    def said(self, pattern: str) -> str:
        """Wait for words of the node that was started last."""
        log = self.folder / f"{len(self.nodes) - 1}.log"
        while (found := re.search(pattern, log.read_text(encoding="utf-8"))) is None:
            assert self.nodes[-1].poll() is None, log.read_text(encoding="utf-8")
            time.sleep(0.05)
        return found[1]

    def need_two(self) -> None:
        """Start a second node, where there is none."""
        if sum(node.poll() is None for node in self.nodes) < 2:
            self.add(f"--address={self.address}")

    def kill(self, number: int) -> None:
        """Kill a node with -9, and all that is below it."""
        node = self.nodes[number]
        below = children_of(node.pid)
        for process in (node.pid, *below):
            if is_alive(process):
                os.kill(process, signal.SIGKILL)
        node.wait()
        while any(is_alive(process) for process in below):
            time.sleep(0.01)


@contextmanager
def cluster() -> Iterator[Nodes]:
    """Have a cluster, of which nothing is left afterwards; its folder is short, as sockets have to be."""
    folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))
    found = Nodes(folder)
    try:
        found.begin()
        yield found
    finally:
        for number in range(len(found.nodes)):
            found.kill(number)
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def one_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTNLAB_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
        with cluster() as found:
            yield found


@pytest.fixture
def nodes(one_cluster: Nodes, monkeypatch: pytest.MonkeyPatch) -> Nodes:
    one_cluster.need_two()
    monkeypatch.setenv("RAY_ADDRESS", one_cluster.address)
    return one_cluster


def finish_without_a_node(file: Path, out: Path, nodes: Nodes, *more: str) -> str:
    """Run a study to its end, and kill the second node as soon as both have a run; return what was said."""
    log = out.parent / f"{out.name}.log"
    driver = start(file, out, "--on", "ray", *more)
    while len(set(re.findall(r"on node (\S+)", log.read_text(encoding="utf-8")))) < 2:
        assert driver.poll() is None, log.read_text(encoding="utf-8")
        time.sleep(0.05)
    nodes.kill(len(nodes.nodes) - 1)
    said = "" if driver.wait() else log.read_text(encoding="utf-8")
    assert "its node was lost" in said, log.read_text(encoding="utf-8")
    assert "raylet" not in said  # Ray's own words
    return said


def written(text: str, plugin: str, file: Path, own: Path) -> Study:
    """Write a study with stages of its own into files, and return it."""
    file.write_text(text, encoding="utf-8")
    own.write_text(plugin, encoding="utf-8")
    load_plugin(str(own))
    return Study.load(file, plugins=[str(own)])


def audits_of(study: Study) -> list[str]:
    """Return what the ledger knows the audits of a study's arms by."""
    design, task = study.design, find_audited_task(study.design)
    keys = [
        [arm.mechanism, *(InstalledArm(arm, name, size, task).key for name, size in design.sizes.items())]
        for arm in design.arms.values()
    ]
    return list(dict.fromkeys(itertools.chain(*keys)))


def nodes_in(out: Path) -> set[str]:
    """Return the workers that a ledger has attempts of."""
    base = sqlite3.connect(f"file:{out / 'ledger.sqlite'}?mode=ro", uri=True)
    try:
        return {worker for (worker,) in base.execute("SELECT worker FROM attempts")}
    finally:
        base.close()


@pytest.mark.skipif("ATTNLAB_SOAK" not in os.environ, reason="minutes long: `make soak` runs it")
def test_a_study_on_two_nodes_ends_as_one_here_also_where_a_node_is_killed(
    tmp_path: Path, own_stages: None, here: None, nodes: Nodes
) -> None:
    file, own, out, lost = (tmp_path / name for name in ("study.toml", "own.py", "out", "lost"))
    study = written(PHASED, OWN, file, own)
    note_audits(out, audits_of(study))
    note_audits(lost, audits_of(study))
    finish(file, out, "--on", "ray", "--plugin", str(own))
    assert len(nodes_in(out)) == 2
    finish_without_a_node(file, lost, nodes, "--plugin", str(own))
    study.run(tmp_path / "whole", say=quiet)
    check_same(out, tmp_path / "whole")
    check_same(lost, tmp_path / "whole")


def test_a_run_that_crashes_costs_itself_alone(tmp_path: Path, own_stages: None, nodes: Nodes) -> None:
    file, own, out = (tmp_path / name for name in ("study.toml", "own.py", "out"))
    text = ONE_SEED.replace("cubed(divide=n)", "crash")
    note_audits(out, audits_of(written(text, CRASHING, file, own)))
    assert start(file, out, "--on", "ray", "--plugin", str(own), "--workers", "1").wait() == 1
    said = (tmp_path / "out.log").read_text(encoding="utf-8")
    assert "recall, tiny, dot, seed 1: finished" in said
    assert said.count("bypass, seed 1 failed: its process was ended by signal 11") == 2
    assert "1 of 2 runs have ended" in said


def test_where_no_cluster_answers_nothing_is_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    monkeypatch.setenv("RAY_ADDRESS", address)
    with pytest.raises(StudyError, match=f"no Ray cluster answers at RAY_ADDRESS={address} .*; start one with"):
        sample().run(tmp_path / "out", on="ray")
    assert not (tmp_path / "out").exists()


def soak() -> None:
    """Run 3 arms × 5 seeds on two nodes, kill one of them in the middle, and compare with a study here."""
    with tempfile.TemporaryDirectory() as name, cluster() as nodes:
        folder = Path(name).resolve()
        file = folder / "study.toml"
        file.write_text(LARGE, encoding="utf-8")
        print(f"here, a study takes {finish(file, folder / 'whole'):.0f} s", flush=True)
        nodes.need_two()
        os.environ["RAY_ADDRESS"] = nodes.address
        said = finish_without_a_node(file, folder / "out", nodes)
        check_same(folder / "out", folder / "whole")
        print("\n".join(line for line in said.splitlines() if "lost" in line))
        print(f"{said.count(': finished')} runs on two nodes, one of which was killed; the ledger is that of a study")
        print("here, to the bit: no row lost or doubled")


if __name__ == "__main__":
    soak()
