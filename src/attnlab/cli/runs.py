"""A trained model by the folder it is in: that of a run, of a study with one of its runs named, or of a saved model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnlab.errors import RequestError
from attnlab.studies.answers.study_folder import LEDGER, open_record
from attnlab.studies.plan.planning import PlannedRun

MOST_LISTED = 20


@dataclass(frozen=True)
class RunChoice:
    """Which run of a study is meant; None leaves it open."""

    arm: str | None = None
    seed: int | None = None
    phase: str | None = None
    size: str | None = None

    def matches(self, run: PlannedRun) -> bool:
        """Tell whether a run may be meant."""
        asked: dict[str, Any] = vars(self)
        return all(value is None or getattr(run, name) == value for name, value in asked.items())

    @property
    def is_open(self) -> bool:
        """Whether nothing was said."""
        return not any(value is not None for value in vars(self).values())


def find_run_folder(path: str, wanted: RunChoice) -> Path:
    """Return the folder that is meant; a study's own needs one of its runs."""
    place = Path(path).expanduser()
    if not place.is_dir():
        raise RequestError(
            f"{path} is no folder; give that of a run: DIR/runs/ID of a study, or --out of attnlab train"
        )
    if not (place / LEDGER).is_file():
        if not wanted.is_open:
            raise RequestError(f"--arm, --run-seed, --phase and --size choose a run of a study; {path} is no study's")
        if not (place / "config.json").is_file():
            raise RequestError(f"{path} holds no model: neither a run (config.json, checkpoints) nor a saved one")
        return place
    with open_record(place) as record:
        meant = [run for run in record.runs if wanted.matches(run) and record.folder_of(run).is_dir()]
        if len(meant) == 1:
            return record.folder_of(meant[0])
        listed = meant or [run for run in record.runs if record.folder_of(run).is_dir()]
        shown = "".join(f"\n  {record.folder_of(run)}  {run.title}" for run in listed[:MOST_LISTED])
        more = f"\n  and {len(listed) - MOST_LISTED} more" if len(listed) > MOST_LISTED else ""
        several = "several runs are meant" if meant and not wanted.is_open else "none of its runs is meant"
        why = "holds a study" if wanted.is_open else f"holds a study, and {several}"
        listing = f":{shown}{more}" if listed else "; none of its runs has begun"
        raise RequestError(f"{path} {why}; give the folder of one run, or --arm, --run-seed, --phase, --size{listing}")
