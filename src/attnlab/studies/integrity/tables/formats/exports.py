"""Exports of experiment trackers: a chart or the runs table of Weights & Biases, and the runs of MLflow."""

import re
from collections.abc import Collection
from dataclasses import replace

from ..figure import is_empty
from ..metrics import recognise_metric, split_words
from ..rows import MLFLOW, RUNS, TextTable
from ..run_names import split_run_names

RANGE = re.compile(r"__(MIN|MAX)$")
OF_RUN = " - "
INTERNAL = ("_step", "_runtime", "_timestamp")
STATES, ENDED = ("state", "status"), frozenset({"finished", "completed", "success", "succeeded", "done", "ended"})
ADMINISTRATION = frozenset({
    "state", "status", "notes", "user", "tags", "created", "updated", "runtime", "duration", "sweep", "hostname",
    "starttime", "endtime", "sourcetype", "sourcename", "version", "artifacturi", "experimentid", "createdat",
    "updatedat", "heartbeatat", "description", "commit", "os", "pythonversion", "gputype", "relativetimeprocess",
    "relativetimewall", "walltime", "url", "entity", "project", "jobtype", "agent", "displayname",
})  # fmt: skip
"""Columns about the tracker, which say nothing of a run's settings or scores."""
LEFT_OUT = (
    "is left out, since a tracker writes columns of this name about the run, such as its time or its state. To use it, "
    "give it another name in the file, such as seconds_of_run, and name that in --map"
)
NAME = "Name"


def tidy_export(table: TextTable) -> TextTable:
    """Return an export of a tracker as a table of runs; any other table is returned as it is."""
    if any(RANGE.search(name) for name in table.header) and any(OF_RUN in name for name in table.header):
        return _name_arms(_tidy_chart(table))
    if any(name.startswith("metrics.") for name in table.header):
        return _name_arms(_tidy_runs(_tidy_mlflow(table)))
    names = {" ".join(split_words(name)) for name in table.header}
    if "name" in names and names & {"state", "status", "created", "run id"}:
        return _name_arms(_tidy_runs(replace(table, form=RUNS)))
    return _read_states(table)


def _read_states(table: TextTable) -> TextTable:
    """Leave out a column that says whether runs finished, as in attnlab's `per_seed.csv`; others are failed runs."""
    name = next((name for name in table.header if name.lower() in STATES), None)
    words = {word.strip().lower() for word in table.column(name)} - {""} if name is not None else set()
    if name is None or not words & ENDED or any(word not in ENDED and not is_empty(word) for word in words):
        return table
    return replace(_tidy_runs(table, {name.lower()}), form=table.form)


def _tidy_chart(table: TextTable) -> TextTable:
    """Turn columns such as `run - eval/loss` into rows; empty cells are steps at which a run logged nothing."""
    columns = [name for name in table.header if OF_RUN in name and not RANGE.search(name)]
    columns = [name for name in columns if name.rpartition(OF_RUN)[2] not in INTERNAL]
    first = table.header[0]
    has_steps = first not in columns and table.is_numeric(first) and first.lower() not in ("relative time (process)",)
    is_range = any(
        row.get(f"{name}__{end}") not in (None, "", row[name])
        for _, row in table.rows for name in columns for end in ("MIN", "MAX")
    )  # fmt: skip
    header = (NAME, *(("step",) if has_steps else ()), "metric", "value")
    rows = []
    for line, row in table.rows:
        for name in columns:
            if row[name]:
                run, _, metric = name.rpartition(OF_RUN)
                cells = [run, *([row[first]] if has_steps else []), metric, row[name]]
                rows.append((line, dict(zip(header, cells, strict=True))))
    remarks = ["'__MIN' and '__MAX' are not used"]
    if is_range:
        remarks.append("some values differ from their '__MIN' and '__MAX': W&B has averaged over runs or steps there")
    return replace(
        table, header=header, rows=tuple(rows), form="a W&B chart", scores=("value",), remarks=tuple(remarks),
        changed={name: "is read as rows with the columns " + ", ".join(header) for name in table.header},
    )  # fmt: skip


def _tidy_mlflow(table: TextTable) -> TextTable:
    """Keep MLflow's metrics, parameters, status and the name of each run."""
    names = {"status": "status", "run_id": "run_id", "tags.mlflow.runName": NAME}
    for name in table.header:
        kind, _, rest = name.partition(".")
        if kind in ("metrics", "params") and rest:
            names[name] = rest if rest not in names.values() else name
    kept = {name: new for name, new in names.items() if name in table.header}
    rows = tuple((line, {new: row[name] for name, new in kept.items()}) for line, row in table.rows)
    scores = tuple(new for name, new in kept.items() if name.startswith("metrics.") and new not in ("step", "epoch"))
    changed = {name: f"is read as '{kept[name]}'" if name in kept else LEFT_OUT for name in table.header}
    return replace(table, header=tuple(kept.values()), rows=rows, form=MLFLOW, scores=scores, changed=changed)


def _tidy_runs(table: TextTable, administration: Collection[str] = ADMINISTRATION) -> TextTable:
    """Count runs that did not finish as failed, and leave out what is about the tracker."""
    states = [name for name in table.header if "".join(split_words(name)) in STATES]
    rows, unfinished = [], []
    for line, row in table.rows:
        state = row[states[0]] if states else ""
        if state and state.lower() not in ENDED:
            unfinished.append(f"{line} ({state})")
            row = {name: state.lower() if _is_score(table, name) else cell for name, cell in row.items()}
        rows.append((line, row))
    kept = tuple(name for name in table.header if "".join(split_words(name)) not in administration)
    shown = tuple((line, {name: row[name] for name in kept}) for line, row in rows)
    remarks = (f"runs that did not finish: {', '.join(unfinished[:4])}",) if unfinished else ()
    changed = {**table.changed, **{name: LEFT_OUT for name in table.header if name not in kept}}
    return replace(table, header=kept, rows=shown, remarks=(*table.remarks, *remarks), changed=changed)


def _is_score(table: TextTable, name: str) -> bool:
    return name in table.scores if table.scores else bool(recognise_metric(name)) and table.is_numeric(name)


def _name_arms(table: TextTable) -> TextTable:
    """Add columns for arm and seed where the names of the runs show them and no column does."""
    known = {split_words(name)[-1] for name in table.header if split_words(name)}
    column = next((name for name in table.header if name.lower() == "name"), None)
    if column is None or "seed" in known or not table.rows or all(map(is_empty, table.column(column))):
        return table
    names = table.column(column)
    pairs = split_run_names(names)
    if not pairs:
        return table
    added = {"arm": [pairs[name][0] for name in names], "seed": [pairs[name][1] for name in names]}
    remark = f"arm and seed from the names of the runs, such as '{names[0]}'"
    return replace(table.add_columns(added), remarks=(*table.remarks, remark))
