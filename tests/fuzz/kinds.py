"""What is broken, and the command that reads it: one generator for every kind of input."""

from __future__ import annotations

import json
import shutil
import sqlite3
import tomllib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import typer.main

from attnlab.checksums import SUMS
from attnlab.cli.verbs import VERBS, _build
from attnlab.mechanisms import CATALOG
from attnlab.studies.file.design import Design
from attnlab.studies.ledger.connection import DIGESTS
from attnlab.training.spec import RunSpec
from tests.studies.samples import STUDY

from . import mutations
from .examples import TRAIN
from .settings import Settings, write_toml, write_value

SMALL = 8
"""The largest number in the settings of inputs that train: theirs are broken, but not long."""
RUN: Mapping[str, Any] = {
    "data.train": "prose.txt", "data.tokenizer": "word", "start.architecture": "gpt2", "config.n_layer": 1,
    "config.n_embd": 16, "config.n_head": 2, "config.n_positions": 32, "precision": "fp32", "segments.0.batch": 2,
    "segments.0.length": 16,
}  # fmt: skip
WORDS = (*(entry.line for entry in CATALOG.values()), "bert", "llama", "word", "prose.txt", "rows.jsonl", "run:best")
EXAMPLE = {key: value for key, value in tomllib.loads(STUDY).items() if key != "budgets"}
TOO_LONG = ("is_compiled",)
"""Settings with values that are valid and take a minute: no input that trains has them."""
STUDY_SETTINGS = Settings(Design, EXAMPLE, WORDS)
TRAINED_STUDY_SETTINGS = Settings(Design, EXAMPLE, WORDS, without=TOO_LONG)
RUN_SETTINGS = Settings(RunSpec, {"segments": [{}], "start": {"config": {"n_layer": 1}}}, WORDS, without=TOO_LONG)
DONE_OR_REFUSED = (0, 2)
WITH_ANSWER = (0, 1, 2)


@dataclass(frozen=True)
class Case:
    """A command line, the statuses that it may end with, and the paths that it may write."""

    argv: list[str]
    statuses: tuple[int, ...] = DONE_OR_REFUSED
    writes: tuple[str, ...] = ()
    has_workers: bool = False
    """Whether runs are trained in other processes, as a user's are."""


Make = Callable[[Random, Path], Case]
"""Break the files in a folder, which has a copy of the examples, and return the command to run there."""


def break_mechanism(random: Random, folder: Path) -> Case:
    """The grammar: `explain` of a broken line, or of a line with several stages."""
    lines = [entry.line for entry in CATALOG.values()]
    line = random.choice([*lines, " | ".join(random.sample(lines, 2)), "dot | softmax @ 0-4; cosine | softmax @ 5"])
    line = mutations.break_line(random, line)
    if random.random() < 0.1:
        return Case(["new", "--", line], writes=("study.toml", "."))
    length = random.choice(("512", "1", "1000000000", mutations.pick_word(random)))
    return Case(["explain", f"--length={length}", *random.choice(([], ["--json"])), "--", line])


def break_study_file(random: Random, folder: Path) -> Case:
    """A study file, its text or its settings: `plan`, `register` and `run --dry-run`."""
    if random.random() < 0.4:
        _break_file(random, folder / "study.toml", mutations.break_toml)
    else:
        (folder / "study.toml").write_bytes(write_toml(STUDY_SETTINGS.change_example(random)))
    return _read_study(random, [])


def break_setting(random: Random, folder: Path) -> Case:
    """`--set`: a path and a value, either of them broken."""
    place, value = STUDY_SETTINGS.pick(random)
    path = ".".join(map(str, place)).replace("phases.0", random.choice(("phases.0", "phases.recall")))
    path = mutations.break_line(random, path) if random.random() < 0.2 else path
    text = mutations.pick_word(random) if random.random() < 0.4 else write_value(value)
    return _read_study(random, ["--set", f"{path}={text}".replace("\0", "0")])


def _read_study(random: Random, extra: list[str]) -> Case:
    kind = random.random()
    if kind < 0.8:
        return Case(["plan", "study.toml", "--spread", "0.1", *extra])
    if kind < 0.9:
        return Case(["run", "study.toml", "--dry-run", "--no-calibration", "--out", "new", *extra])
    return Case(["register", "study.toml", "--out", "new", *extra], writes=("new", "study", "."))


def break_training(random: Random, folder: Path) -> Case:
    """A run of one or two updates with any settings: `train`."""
    changes = dict(RUN_SETTINGS.pick(random, limit=SMALL) for _ in range(random.randint(1, 2)))
    values = {**RUN} | {".".join(map(str, place)): value for place, value in changes.items()}
    argv = [
        part for path, value in values.items() for part in ("--set", f"{path}={write_value(value)}".replace("\0", "0"))
    ]
    extent = ["--steps", random.choice("12")]
    return Case(["train", "clm", *extent, *argv, "--out", "new"], WITH_ANSWER, writes=("new",))


def break_whole_study(random: Random, folder: Path) -> Case:
    """A study of runs of a few updates with any settings: `run`."""
    content = TRAINED_STUDY_SETTINGS.change_example(random, limit=SMALL)
    (folder / "study.toml").write_bytes(write_toml(content))
    extra = ["--no-report"] if random.random() < 0.9 else []
    argv = ["run", "study.toml", "--out", "new", "--set", "seeds=[1]", *extra]
    return Case(argv, WITH_ANSWER, writes=("new",), has_workers=random.random() < 0.05)


BASES: Mapping[str, list[str]] = {
    "demo": ["demo", "--zzz"], "mechanisms": ["mechanisms"], "explain": ["explain", "dot | softmax"],
    "audit": ["audit", "dot | softmax", "--only", "numerics"], "bench": ["bench", "dot | softmax", "--lengths", "x"],
    "construct": ["construct", "select", "--index", "0"], "data": ["data", "prose.txt"],
    "score": ["score", "squad", "--data", "squad.json", "--predictions", "predictions.json"],
    "judge": ["judge", "table.csv"], "train": [*TRAIN, "--out", "new", "--steps", "x"], "recipes": ["recipes"],
    "new": ["new", "cosine | softmax", "--out", "new.toml"], "register": ["register", "study.toml", "--out", "new"],
    "run": ["run", "study.toml", "--no-calibration", "--out", "new"],
    "watch": ["watch", "missing"], "plan": ["plan", "study.toml", "--spread", "0.1"],
    "compare": ["compare", "study"], "report": ["report", "missing"], "generate": ["generate", "missing"],
    "export": ["export", "missing", "--out", "new"], "doctor": ["doctor"], "inspect": ["inspect", "missing"],
}  # fmt: skip
"""A valid command of every verb; of those that would take long, one that is refused."""
SKIPPED = (
    "--dry-run", "--help", "--page", "--open", "--times", "--train", "--catalog", "--install-completion",
    "--show-completion",
)  # fmt: skip
"""Options after which a verb takes long, starts a browser, or prints a page of help."""
COMMANDS: Mapping[str, Any] = typer.main.get_command(_build(VERBS)).commands  # type: ignore[attr-defined]


def break_options(random: Random, folder: Path) -> Case:
    """The options of every verb, with any value, beside an unknown option now and then."""
    verb = random.choice([*VERBS])
    argv = list(BASES[verb])
    params = [param for param in COMMANDS[verb].params if param.opts[0].startswith("--")]
    options = [param for param in params if param.opts[0] not in SKIPPED]
    for option in random.sample(options, min(len(options), random.randint(1, 3))):
        argv.append(option.opts[0] if option.is_flag else f"{option.opts[0]}={mutations.pick_word(random)}")
    if random.random() < 0.2:
        place = random.randint(1, len(argv))
        argv[place:place] = [mutations.pick_word(random)]
    elif random.random() < 0.2:
        place = random.randrange(1, len(argv)) if len(argv) > 1 else 1
        argv[place : place + 1] = [mutations.pick_word(random)]
    statuses = WITH_ANSWER if verb in ("audit", "judge", "data", "construct") else DONE_OR_REFUSED
    return Case(argv, statuses, writes=(".",))


def break_table(random: Random, folder: Path) -> Case:
    """Tables of results: `judge`."""
    name = random.choice(("table.csv", "wide.csv", "summary.csv"))
    _break_file(random, folder / name, mutations.break_text)
    extra = ["--summary", "summary.csv"] if name == "summary.csv" else []
    return Case(["judge", name if not extra else "table.csv", *extra, *random.choice(([], ["--json"]))], WITH_ANSWER)


DATA = (
    "prose.txt", "rows.jsonl", "rows.csv", "table.tsv", "squad.json", "list.json", "prose.txt.gz", "rows.jsonl.xz",
    "rows.parquet",
)  # fmt: skip


def break_data(random: Random, folder: Path) -> Case:
    """Data files of every ending, and vocabularies: `data`."""
    name = random.choice(DATA)
    is_binary = name.endswith((".gz", ".xz", ".parquet"))
    change = mutations.break_bytes if is_binary else mutations.break_text
    _break_file(random, folder / name, mutations.break_json if name.endswith(".json") else change)
    if random.random() < 0.2:
        _break_file(random, folder / "vocab.txt", mutations.break_text)
        return Case(["data", "prose.txt", "--tokenizer", "vocab.txt"])
    return Case(["data", name, *random.choice(([], ["--json"], ["--unit", "paragraph"], ["--column", "text"]))])


def break_predictions(random: Random, folder: Path) -> Case:
    """Predictions and the examples they are of: `score`."""
    kind = random.randrange(3)
    if kind == 0:
        name = random.choice(("rows.jsonl", "labels.tsv"))
        _break_file(random, folder / name, mutations.break_text)
        return Case(["score", "glue", "sst2", "--data", "rows.jsonl", "--predictions", "labels.tsv"])
    name = random.choice(("squad.json", "predictions.json", "odds.json"))
    _break_file(random, folder / name, mutations.break_json)
    task = ["squad"] if kind == 1 else ["squad_v2", "--na-probs", "odds.json"]
    return Case(["score", *task, "--data", "squad.json", "--predictions", "predictions.json"])


def break_keys(random: Random, folder: Path) -> Case:
    """Matrices of numbers: `construct`."""
    name = random.choice(("keys.json", "keys.csv"))
    _break_file(random, folder / name, mutations.break_json if name.endswith(".json") else mutations.break_text)
    what = random.choice((["select", "--index", "0"], ["select-all"], ["average"], ["argmax", "--query", "1,0.5"]))
    return Case(["construct", *what, "--keys", name], WITH_ANSWER)


def break_plugin(random: Random, folder: Path) -> Case:
    """A file of stages: `explain` with it."""
    _break_file(random, folder / "plugin.py", mutations.break_text)
    return Case(["explain", "near | softmax", "--plugin", "plugin.py"])


def break_saved_model(random: Random, folder: Path) -> Case:
    """A folder of attnlab.save: `generate`."""
    _break_one_of(random, folder / "saved")
    return Case(["generate", "saved", "--prompt", "The list", "--tokens", "1"])


def break_pretrained(random: Random, folder: Path) -> Case:
    """A folder of transformers: `audit --model`, and a run that starts from it."""
    _break_one_of(random, folder / "plain")
    if random.random() < 0.5:
        return Case(["audit", "--model", "plain", "--only", "numerics"], WITH_ANSWER)
    argv = ["train", "clm", "--start", "plain", "--data", "prose.txt", "--tokenizer", "plain", "--out", "new"]
    return Case([*argv, "--steps", "1", "--batch", "1", "--set", "precision=fp32"], WITH_ANSWER, writes=("new",))


def break_run(random: Random, folder: Path) -> Case:
    """The folder of a run and its checkpoints: `generate`, `export`, and resuming it."""
    _break_one_of(random, folder / "run")
    kind = random.randrange(3)
    if kind == 0:
        return Case(["export", "run", "--out", "new"], writes=("new",))
    if kind == 1:
        return Case(["train", "--out", "run"], WITH_ANSWER, writes=("run",))
    return Case(["generate", "run", "--prompt", "The list", "--tokens", "1"])


def break_ledger(random: Random, folder: Path) -> Case:
    """The ledger of a study, its bytes or its rows: `compare`, `judge`, `plan`, `report`."""
    ledger = folder / "study" / "ledger.sqlite"
    if random.random() < 0.5:
        _break_file(random, ledger, mutations.break_bytes)
    else:
        _break_row(random, ledger)
    verb = random.choice(("compare", "compare", "judge", "plan", "export"))
    if verb == "export":
        return Case(["export", "study", "--out", "new", "--arm", "dot"])
    return Case([verb, "study", "--json"], WITH_ANSWER, writes=("study",))


KINDS: Mapping[str, tuple[int, Make]] = {
    "grammar": (4, break_mechanism), "study files": (3, break_study_file), "--set": (3, break_setting),
    "training": (1, break_training), "studies": (1, break_whole_study), "options": (4, break_options),
    "tables": (3, break_table), "data files": (4, break_data),
    "predictions": (2, break_predictions), "matrices": (1, break_keys), "plug-ins": (1, break_plugin),
    "saved models": (2, break_saved_model), "checkpoints": (1, break_pretrained), "runs": (2, break_run),
    "ledgers": (3, break_ledger),
}  # fmt: skip
"""Every kind with its share of the inputs."""


def _break_file(random: Random, file: Path, change: Callable[[Random, bytes], bytes]) -> None:
    content = file.read_bytes()
    if random.random() < 0.02:
        file.unlink()
        with suppress(OSError):
            random.choice((file.mkdir, lambda: file.symlink_to(file.name), lambda: __import__("os").mkfifo(file)))()
    else:
        file.write_bytes(change(random, content))


def _break_one_of(random: Random, folder: Path) -> None:
    """Break a file; half of the times those of a folder without hashes, such as one of another program."""
    if random.random() < 0.5:
        _remove_hashes(folder)
    file = random.choice(sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "README.md"))
    if random.random() < 0.05:
        shutil.rmtree(file.parent)
    else:
        _break_file(random, file, mutations.break_json if file.suffix == ".json" else mutations.break_bytes)


def _remove_hashes(folder: Path) -> None:
    for file in folder.rglob(SUMS):
        file.unlink()
    for file in folder.rglob("*.json"):
        content = json.loads(file.read_bytes())
        if isinstance(content, dict) and content.pop("sha256", None) is not None:
            file.write_text(json.dumps(content), encoding="utf-8")


def _break_row(random: Random, ledger: Path) -> None:
    """Change one cell of a table of a ledger, and leave the file a valid database."""
    with sqlite3.connect(ledger) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for (trigger,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            database.execute(f'DROP TRIGGER "{trigger}"')
        table = random.choice(tables)
        if table != DIGESTS and random.random() < 0.5:  # as in a ledger of an older version
            database.execute(f"DROP TABLE {DIGESTS}")
        rows = database.execute(f'SELECT rowid, * FROM "{table}"').fetchall()
        columns = [row[1] for row in database.execute(f'PRAGMA table_info("{table}")')]
        if not rows:
            return
        row, place = random.choice(rows), random.randrange(len(columns))
        cell = row[place + 1]
        if isinstance(cell, str) and cell[:1] in ("{", "["):
            value: Any = mutations.break_json(random, cell.encode()).decode("utf-8", "replace")
        else:
            value = random.choice((None, 1, -1, "x", "", b"\xff", 1e308, "\x1b[31m", "[" * 10_000))
        with suppress(sqlite3.IntegrityError):
            database.execute(f'UPDATE "{table}" SET "{columns[place]}" = ? WHERE rowid = ?', (value, row[0]))
    database.close()
