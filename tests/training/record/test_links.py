"""Symbolic links prepared in an output folder: what they lead to is never written."""

from __future__ import annotations

import itertools
from contextlib import suppress
from pathlib import Path

import pytest

from attnlab.errors import AttnlabError
from attnlab.reports.study.report import write_report
from attnlab.studies.ledger.database import Ledger
from attnlab.training import Segment
from tests.reports.study.made import BASE, Made
from tests.training.runs import small, trained

SECRET = "not to be changed\n"
RUN = small("mqar", segments=(Segment(steps=2, batch=4),), checkpoint_every=1)


def list_names(folder: Path) -> list[str]:
    """List every file under a folder, and the temporary name beside it."""
    files = [file.relative_to(folder) for file in sorted(folder.rglob("*")) if file.is_file()]
    return list(itertools.chain.from_iterable((str(f), str(f.with_name(f".{f.name}.writing"))) for f in files))


def plant(folder: Path, name: str) -> Path:
    """Make a link of this name in a folder; return the file that it leads to."""
    victim = folder.parent / "victim"
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    victim.write_text(SECRET)
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(victim)
    return victim


@pytest.fixture(scope="module")
def run_names(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("run") / "out"
    trained(RUN, folder)
    return list_names(folder)


def test_a_run_writes_through_no_link(run_names: list[str], tmp_path: Path) -> None:
    assert {"lock", "metrics.jsonl", "config.json", ".config.json.writing"} <= set(run_names)
    for number, name in enumerate(run_names):
        folder = tmp_path / str(number) / "out"
        victim = plant(folder, name)
        with suppress(AttnlabError):
            trained(RUN, folder)
        assert victim.read_text() == SECRET, name


def test_a_report_writes_through_no_link(tmp_path: Path) -> None:
    folder = Made(tmp_path / "study").give("dot", BASE).give("better", BASE).done()
    write_report(folder)
    names = [name for name in list_names(folder) if not name.startswith(("ledger", ".ledger"))]
    assert "report.html" in names
    for name in names:
        victim = plant(folder, name)
        write_report(folder)
        assert victim.read_text() == SECRET, name


@pytest.mark.parametrize("ending", ["", "-wal", "-shm", "-journal"])
def test_a_ledger_is_not_a_link(tmp_path: Path, ending: str) -> None:
    victim = plant(tmp_path / "study", f"ledger.sqlite{ending}")
    with pytest.raises(AttnlabError, match="is a symbolic link"):
        Ledger(tmp_path / "study" / "ledger.sqlite")
    assert victim.read_text() == SECRET
