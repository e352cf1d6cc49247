"""The folder of a trained model: of a run, of a study with options that choose a run, or of a saved model."""

from pathlib import Path

from attnlab.errors import RequestError
from attnlab.inputs import expand_path
from attnlab.studies.answers.study_folder import LEDGER, open_record

MAX_LISTED = 20


def find_run_folder(path: str, **options: str | int | None) -> Path:
    """Return the folder of the run or saved model; of a study the run whose arm, seed, phase and size match."""
    wanted = {name: value for name, value in options.items() if value is not None}
    place = expand_path(path)
    if not place.is_dir():
        raise RequestError(f"{path} is not a folder; give a run: DIR/runs/ID of a study, or --out of attnlab train")
    if not (place / LEDGER).is_file():
        if wanted:
            raise RequestError(f"--arm, --run-seed, --phase and --size choose a run of a study; {path} is not a study")
        if not (place / "config.json").is_file():
            raise RequestError(f"{path} has no config.json; give the folder of a run or of a model saved by attnlab")
        return place
    with open_record(place) as record:
        started = [run for run in record.runs if record.folder_of(run).is_dir()]
        matching = [run for run in started if all(getattr(run, name) == value for name, value in wanted.items())]
        if len(matching) == 1:
            return record.folder_of(matching[0])
        listed = matching or started
        shown = "".join(f"\n  {record.folder_of(run)}  {run.title}" for run in listed[:MAX_LISTED])
        more = f"\n  and {len(listed) - MAX_LISTED} more" if len(listed) > MAX_LISTED else ""
        count = "several of its runs match" if matching else "none of its runs matches"
        why = f"holds a study, and {count}" if wanted else "holds a study"
        listing = f":{shown}{more}" if listed else "; none of its runs has begun"
        raise RequestError(f"{path} {why}; give the folder of one run, or --arm, --run-seed, --phase, --size{listing}")
