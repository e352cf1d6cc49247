"""The folder of a trained model: of a run, of a study with options that choose a run, or of a saved model."""

from dataclasses import dataclass
from pathlib import Path

from attnlab.errors import RequestError
from attnlab.studies.answers.study_folder import LEDGER, open_record
from attnlab.studies.plan.planning import PlannedRun

MOST_LISTED = 20


@dataclass(frozen=True)
class RunChoice:
    """The options that choose a run of a study; None matches any."""

    arm: str | None = None
    seed: int | None = None
    phase: str | None = None
    size: str | None = None

    def matches(self, run: PlannedRun) -> bool:
        """Whether a run matches all options."""
        return all(value is None or getattr(run, name) == value for name, value in vars(self).items())

    @property
    def is_open(self) -> bool:
        """Whether no option is given."""
        return all(value is None for value in vars(self).values())


def find_run_folder(path: str, wanted: RunChoice) -> Path:
    """Return the folder of the run or saved model; of a study the run that matches."""
    place = Path(path).expanduser()
    if not place.is_dir():
        raise RequestError(f"{path} is not a folder; give that of a run: DIR/runs/ID of a study, or of attnlab train")
    if not (place / LEDGER).is_file():
        if not wanted.is_open:
            raise RequestError(f"--arm, --run-seed, --phase and --size choose a run of a study; {path} is none")
        if not (place / "config.json").is_file():
            raise RequestError(f"{path} holds no model: neither a run (config.json, checkpoints) nor a saved one")
        return place
    with open_record(place) as record:
        started = [run for run in record.runs if record.folder_of(run).is_dir()]
        matching = [run for run in started if wanted.matches(run)]
        if len(matching) == 1:
            return record.folder_of(matching[0])
        listed = matching or started
        shown = "".join(f"\n  {record.folder_of(run)}  {run.title}" for run in listed[:MOST_LISTED])
        more = f"\n  and {len(listed) - MOST_LISTED} more" if len(listed) > MOST_LISTED else ""
        count = "several of its runs match" if matching else "none of its runs matches"
        why = "holds a study" if wanted.is_open else f"holds a study, and {count}"
        listing = f":{shown}{more}" if listed else "; none of its runs has begun"
        raise RequestError(f"{path} {why}; give the folder of one run, or --arm, --run-seed, --phase, --size{listing}")
