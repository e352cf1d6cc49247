"""`attnlab train`: one run, or on with one that was stopped."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attnlab.cli.assignments import filled, parted, plain
from attnlab.cli.tables import print_json, print_table
from attnlab.errors import RequestError, closest

if TYPE_CHECKING:
    from attnlab.training import Result, Run

SECTIONS = ("stage", "optimizer", "schedule", "tuning", "data", "watching", "config", "task", "settings")
"""What --set reaches: parts of a run, the model's config, and the task's own settings."""
INTERRUPTED = 128 + signal.SIGINT


def train(
    task: Annotated[str, typer.Argument(metavar="[TASK]", help="mlm, clm, squad, boolq, sst2 …, mqar, copy …")] = "",
    out: Annotated[str, typer.Option(metavar="DIR", help="The folder of the run; given alone, the run goes on.")] = "",
    data: Annotated[str, typer.Option(metavar="SOURCE", help="What to train on: a file, embedded:…, hf:…")] = "",
    dev: Annotated[str | None, typer.Option(metavar="SOURCE", help="What to evaluate on.")] = None,
    architecture: Annotated[str | None, typer.Option(metavar="TYPE", help="A new model: bert, gpt2, llama …")] = None,
    start: Annotated[str | None, typer.Option(metavar="PATH", help="A checkpoint, or the folder of a run.")] = None,
    mechanism: Annotated[
        str | None, typer.Option(metavar="LINE", help="What attention is; 'dot | softmax' if left out.")
    ] = None,
    tokenizer: Annotated[str | None, typer.Option(help="A path, or word, wordpiece:4000, bpe:8000 to train.")] = None,
    steps: Annotated[int | None, typer.Option(help="Updates.")] = None,
    epochs: Annotated[float | None, typer.Option(help="Times over the data, where no steps are given.")] = None,
    batch: Annotated[int | None, typer.Option(help="Rows of an update.")] = None,
    lr: Annotated[float | None, typer.Option(help="The highest learning rate.")] = None,
    seed: Annotated[
        int | None, typer.Option(help="Of initial weights, order, masking and dropout; 0 if left out.")
    ] = None,
    tune: Annotated[str | None, typer.Option(help="full, head, prompt, prefix or lora; full if left out.")] = None,
    stage: Annotated[
        list[str] | None, typer.Option(metavar="A=B,…", help="A stage, as name=long,steps=15000,length=512; repeat it.")
    ] = None,
    assign: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="A.B=C", help="Any other setting, as optimizer.betas=0.9,0.95; repeat it."),
    ] = None,
    prompt: Annotated[list[str] | None, typer.Option(help="Sample its continuation on the way; repeat it.")] = None,
    sentence: Annotated[list[str] | None, typer.Option(help="Say its loss on the way; repeat it.")] = None,
    threads: Annotated[int | None, typer.Option(help="Threads to compute with.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result for programs to read.")] = False,
) -> int:
    """Train one model on one task; the same command goes on where it stopped."""
    if not out:
        raise RequestError("--out DIR is missing: the folder that the run keeps its checkpoints and metrics in")
    # Imported here because the command line must answer --help without torch.
    from attnlab.training import Display, build, read_result
    from attnlab.training import train as train_job

    folder = Path(out).expanduser()
    sections = sorted_out(assign or [])
    options = {
        "steps": ("stage", "steps", steps), "epochs": ("stage", "epochs", epochs), "batch": ("stage", "batch", batch),
        "lr": ("optimizer", "lr", lr), "tune": ("tuning", "mode", tune), "seed": ("settings", "seed", seed),
        "data": ("data", "train", data or None), "dev": ("data", "dev", dev),
        "tokenizer": ("data", "tokenizer", tokenizer),
    }  # fmt: skip
    for option, (section, name, value) in options.items():
        put(sections[section], name, value, f"--{option} and --set {section}.{name}")
    for name, texts in (("prompts", prompt), ("sentences", sentence)):
        if texts:
            sections["watching"][name] = ""
    if not task:
        chosen = {"--architecture": architecture, "--start": start, "--mechanism": mechanism, "--stage": stage}
        run = stored(folder, sections, [option for option, value in chosen.items() if value], threads)
    else:
        places = {"architecture": architecture, "checkpoint": start, "mechanism": mechanism}
        run = described(task, places, sections, stage or [], threads)
    run = listening(run, prompt, sentence)
    ended = read_result(folder)
    is_first = os.environ.get("RANK", "0") == "0"  # under torchrun one process speaks for all
    display = Display(is_quiet=not is_first)
    result = train_job(build(run, display.say), folder, display) if ended is None or task else ended
    if as_json and is_first:
        print_json(result.record())
    elif is_first:
        print_result(result, folder)
    return {"diverged": 1, "interrupted": INTERRUPTED}.get(result.status, 0)


def put(section: dict[str, str], name: str, value: object, both: str) -> None:
    """Put the value of an option, if it was given, where --set would; both at once are an error."""
    if value is None:
        return
    if name in section:
        raise RequestError(f"{both} say the same thing; give one of them")
    section[name] = str(value)


def sorted_out(texts: list[str]) -> dict[str, dict[str, str]]:
    """Sort `section.name=value` by section."""
    sections: dict[str, dict[str, str]] = {section: {} for section in SECTIONS}
    for name, value in parted(texts, "--set").items():
        section, dot, own = name.partition(".")
        if not dot:
            section, own = "settings", name
        if section not in sections:
            hint = closest(section, SECTIONS) or "."
            raise RequestError(f"--set reaches {', '.join(SECTIONS)}, not '{section}'{hint}")
        sections[section][own] = value
    return sections


def described(
    task: str, places: dict[str, str | None], sections: dict[str, dict[str, str]], stages: list[str],
    threads: int | None,
) -> Run:  # fmt: skip
    """Make a run of what the command line says."""
    from attnlab.training import Data, Optimizer, Run, Schedule, Settings, Stage, Start, Tuning, Watching

    if not places["architecture"] and not places["checkpoint"]:
        raise RequestError("which model? --architecture TYPE for a new one (bert, gpt2 …), or --start PATH")
    shared = sections["stage"]
    if stages:
        made = tuple(Stage(**filled(Stage, shared | parted(text.split(","), "--stage"), "stage")) for text in stages)
    else:
        if "steps" not in shared and "epochs" not in shared:
            shared = {**shared, "epochs": "1"}
        made = (Stage(**filled(Stage, shared, "stage")),)
    kinds: dict[str, type[Any]] = {"optimizer": Optimizer, "schedule": Schedule, "tuning": Tuning}
    parts = {name: kind(**filled(kind, sections[name], name)) for name, kind in kinds.items()}
    for name in sections["settings"]:
        if name in (*parts, "stages"):
            raise RequestError(f"{name} has settings of its own: --set {name.removesuffix('s')}.NAME=VALUE")
    settings = filled(Settings, sections["settings"], "settings")
    config = {name: plain(text) for name, text in sections["config"].items()}
    return Run(
        task,
        Start(config=config, **{name: value for name, value in places.items() if value}),
        Data(**filled(Data, sections["data"], "data")),
        {name: plain(text) for name, text in sections["task"].items()},
        Settings(**{"stages": made, **parts, **settings}),
        Watching(**filled(Watching, sections["watching"], "watching")),
        threads,
    )


def stored(folder: Path, sections: dict[str, dict[str, str]], chosen: list[str], threads: int | None) -> Run:
    """Read the run that a folder holds; what decides its result cannot change."""
    import dataclasses

    from attnlab.training import Run, Stage, Watching
    from attnlab.training.record import read_json

    if not (folder / "config.json").exists():
        raise RequestError(f"{folder} holds no run to go on with; to begin one, name a task: attnlab train clm --out …")
    smaller = {"micro_batch": sections["stage"].pop("micro_batch")} if "micro_batch" in sections["stage"] else {}
    given = [f"{section}.{name}" for section in SECTIONS if section != "watching" for name in sections[section]]
    if changed := [*chosen, *given]:
        raise RequestError(
            f"a run goes on as it was begun, and {changed[0]} was given; begin another in a folder of its own"
        )
    watching = Watching(**filled(Watching, sections["watching"], "watching"))
    run = Run.of(read_json(folder / "config.json"))
    passes = filled(Stage, smaller, "stage")
    stages = tuple(dataclasses.replace(stage, **passes) for stage in run.settings.stages)
    settings = dataclasses.replace(run.settings, stages=stages)
    return dataclasses.replace(run, settings=settings, watching=watching, threads=threads)


def listening(run: Run, prompts: list[str] | None, sentences: list[str] | None) -> Run:
    """Let a run sample and say losses on the way: at its end where no steps between are given."""
    import dataclasses

    if not prompts and not sentences:
        return run
    watching = run.watching
    every = watching.sample_every or 2**31
    watching = dataclasses.replace(
        watching, prompts=tuple(prompts or ()), sentences=tuple(sentences or ()), sample_every=every
    )
    return dataclasses.replace(run, watching=watching)


def print_result(result: Result, folder: Path) -> None:
    """Print what became of a run."""
    rows: list[tuple[str, ...]] = []
    for name, found in (("last", result.last), ("best", result.best)):
        if found is not None:
            figures = "  ".join(f"{figure} {value:.6g}" for figure, value in found.figures.items())
            rows.append((name, f"{found.step:,}", figures))
    print(f"{folder}: {result.sentence}")
    if rows:
        print_table(("", "step", "figures"), rows)
    for note in dict.fromkeys(found.note for found in (result.last, result.best) if found is not None and found.note):
        print(note)
    numbers = ", ".join(f"{name} {number:,}" for name, number in result.parameters.items())
    print(f"parameters: {numbers}; {result.tokens:,} tokens in {result.seconds:,.1f} s of updates")
