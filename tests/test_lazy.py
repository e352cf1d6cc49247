"""Rooms load on first use, and a function keeps its name beside the file that defines it."""

import subprocess
import sys
from pathlib import Path

import attnlab

CODE = """
import sys
import attnlab
assert "torch" not in sys.modules
assert attnlab.studies.__name__ == "attnlab.studies"
assert attnlab.reports.__name__ == "attnlab.reports"
assert attnlab.training.__name__ == "attnlab.training"
assert "torch" not in sys.modules, "a room was loaded whole"
from attnlab.training.job.build import choose_split
from attnlab.training import build
assert callable(build) and build.__name__ == "build"
"""


def test_rooms_resolve_without_torch_and_functions_are_not_hidden_by_their_files() -> None:
    subprocess.run([sys.executable, "-c", CODE], check=True)


def test_every_public_name_resolves() -> None:
    for room in (attnlab, attnlab.data, attnlab.reports, attnlab.statistics, attnlab.studies, attnlab.training):
        assert [name for name in room.__all__ if not hasattr(room, name)] == []
        assert set(room.__all__) <= set(dir(room))


FOLLOWER = """
import importlib.util
import sys
sys.path.insert(0, sys.argv[1])
from attnlab.lazy import load_after
load_after("first", "second")
assert "second" not in sys.modules
assert importlib.util.find_spec("first") is not None  # whether it is there, asked twice
assert importlib.util.find_spec("first") is not None
assert "second" not in sys.modules
import first
assert first.VALUE == 1 and "second" in sys.modules
load_after("first", "third")
assert "third" in sys.modules
"""


def test_a_module_follows_another_one(tmp_path: Path) -> None:
    (tmp_path / "first.py").write_text("VALUE = 1")
    (tmp_path / "second.py").write_text("from first import VALUE")
    (tmp_path / "third.py").touch()
    subprocess.run([sys.executable, "-c", FOLLOWER, str(tmp_path)], check=True)
