"""Commands that read results, and refusals of missing models, import neither torch nor transformers."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.studies.folders import BETTER, DOT, write_folder

CODE = """
import sys
from attnlab.cli import main
status = main(sys.argv[1:])
assert status in {statuses}, status
heavy = {{"torch", "transformers", "datasets"}} & set(sys.modules)
assert not heavy, heavy
"""


def run_quickly(*words: str, statuses: tuple[int, ...] = (0, 1)) -> str:
    """Run a command in a process of its own, which fails if it imports torch; return what it printed."""
    code = CODE.format(statuses=statuses)
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, encoding="utf-8", timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_judge(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    rows = [f"{arm},{seed},{0.5 + seed / 100 + bonus}" for arm, bonus in (("a", 0.0), ("b", 0.1)) for seed in (1, 2, 3)]
    table.write_text("\n".join(["arm,seed,accuracy", *rows]), encoding="utf-8")
    assert "Analysis" in run_quickly("judge", str(table))


@pytest.mark.parametrize("verb", ["compare", "plan", "report"])
def test_a_study_that_has_ended_is_read(verb: str, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "study", {"dot": DOT, "better": BETTER})
    assert run_quickly(verb, str(folder))


def test_results_from_several_places_are_compared(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "study", {"dot": DOT, "better": BETTER})
    numbers = "theirs=" + ",".join(map(str, BETTER))
    assert "Are they comparable?" in run_quickly("compare", str(folder), numbers, "--arm", "dot", "--arm", "theirs")


@pytest.mark.parametrize("words", [("audit", "--model"), ("inspect", "--text", "the cat")])
def test_a_missing_model_is_refused(words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "baseline").mkdir()
    folder = str(tmp_path / "missing")
    message = f"there is no folder '{folder}'; {tmp_path} holds baseline"
    assert message in run_quickly(*words, folder, statuses=(2,))


def test_a_hub_that_cannot_be_reached_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{port}")  # closed by now
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    shown = run_quickly("audit", "--model", "nowhere/x", statuses=(2,))
    assert (
        "there is no folder 'nowhere/x'; it was taken for a name on the hub. The hub cannot be reached (127.0.0.1"
        in shown
    )
