"""`attnlab train`: one run, or the rest of one that was stopped."""

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attnlab.cli.assignments import read_settings, read_value, split_assignments
from attnlab.cli.flags import FLAGS, name_flags
from attnlab.cli.options import AsJson, Plugins, Trackers
from attnlab.cli.plugin import load_plugins
from attnlab.cli.tables import print_json, print_table
from attnlab.errors import RequestError
from attnlab.inputs import expand_path

if TYPE_CHECKING:
    from attnlab.training import Result, RunSpec

INTERRUPTED = 128 + signal.SIGINT
AT_THE_END = 10**9
"""A number of steps between samples that no run reaches."""


def train(
    task: Annotated[str, typer.Argument(metavar="[TASK]", help="mlm, clm, squad, boolq, sst2 …, mqar, copy …")] = "",
    out: Annotated[str, typer.Option(metavar="DIR", help="The folder of the run; alone it resumes the run.")] = "",
    data: Annotated[str, typer.Option(metavar="SOURCE", help="Training data: a file, embedded:…, hf:…")] = "",
    dev: Annotated[str | None, typer.Option(metavar="SOURCE", help="Evaluation data.")] = None,
    architecture: Annotated[str | None, typer.Option(metavar="TYPE", help="A new model: bert, gpt2, llama …")] = None,
    start: Annotated[str | None, typer.Option(metavar="PATH", help="A checkpoint, or the folder of a run.")] = None,
    mechanism: Annotated[str | None, typer.Option(metavar="LINE", help="Default: 'dot | softmax'.")] = None,
    tokenizer: Annotated[str | None, typer.Option(help="A path, or word, wordpiece:4000, bpe:8000, char.")] = None,
    steps: Annotated[int | None, typer.Option(help="Updates.")] = None,
    epochs: Annotated[float | None, typer.Option(help="Passes over the data, instead of steps.")] = None,
    batch: Annotated[int | None, typer.Option(help="Rows per update.")] = None,
    lr: Annotated[float | None, typer.Option(help="The highest learning rate.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of weights, order, masking and dropout; default: 0.")] = None,
    tune: Annotated[str | None, typer.Option(help="full, head, prompt, prefix or lora; default: full.")] = None,
    segment: Annotated[
        list[str] | None, typer.Option(metavar="A=B,…", help="Such as name=long,steps=15000,length=512; repeatable.")
    ] = None,
    assign: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="A.B=C", help="Any setting by path: optimizer.lr, config.n_layer …; repeatable."),
    ] = None,
    prompt: Annotated[list[str] | None, typer.Option(help="Sample continuations at the end; repeatable.")] = None,
    sentence: Annotated[list[str] | None, typer.Option(help="Print its loss at the end; repeatable.")] = None,
    threads: Annotated[int | None, typer.Option(help="The number of threads.")] = None,
    track: Trackers = None,
    plugin: Plugins = None,
    as_json: AsJson = False,
) -> int:
    """Train one model on one task; the same command resumes a run that was stopped."""
    if not out:
        _check_task(task)
        raise RequestError(
            "--out DIR is missing: the folder that the run keeps its checkpoints and metrics in. For example: attnlab "
            "train clm --architecture gpt2 --data embedded:pydoc --tokenizer wordpiece:4000 --out run"
        )
    load_plugins(plugin)
    from attnlab.training import Display, build, read_result
    from attnlab.training import train as train_job
    from attnlab.training.record.folder import OWN_FILES
    from attnlab.training.record.lock import refuse_foreign_files

    folder = expand_path(out)
    settings = read_settings(assign)
    options = {
        "optimizer.lr": lr, "tuning.mode": tune, "seed": seed, "threads": threads, "data.train": data or None,
        "data.dev": dev, "data.tokenizer": tokenizer, "start.architecture": architecture, "start.checkpoint": start,
        "start.mechanism": mechanism, "prompts": prompt, "sentences": sentence, "trackers": track,
    }  # fmt: skip
    for path, value in options.items():
        if value is not None and path in settings:
            raise RequestError(f"{FLAGS[path]} and --set {path} set the same value; give one of them")
        if value is not None:
            settings[path] = value
    if architecture is not None and start is not None:
        raise RequestError("--architecture makes a new model, and --start loads one; give one of them")
    if steps is not None and epochs is not None:
        raise RequestError("--steps and --epochs both set the length of the training; give one of them")
    if prompt or sentence:
        settings = {"prompts": [], "sample_every": AT_THE_END, **settings}
    lengths = {"steps": steps, "epochs": epochs, "batch": batch}
    extent = {name: value for name, value in lengths.items() if value is not None}
    with name_flags(has_segments=bool(segment)):
        if task:
            run = describe_run(task, settings, extent, segment or [])
        else:
            chosen = [*(f"--{name}" for name in extent), *(["--segment"] if segment else [])]
            run = read_run(folder, settings, chosen)
    refuse_foreign_files(folder, OWN_FILES, "run")
    ended = read_result(folder)
    is_first = os.environ.get("RANK", "0") == "0"  # under torchrun one process prints for all
    display = Display(is_quiet=not is_first)
    with name_flags(has_segments=bool(segment)):
        result = train_job(build(run, display.say), folder, display) if ended is None or task else ended
    if as_json and is_first:
        print_json(result.record())
    elif is_first:
        print_result(result, folder)
    return {"diverged": 1, "interrupted": INTERRUPTED}.get(result.status, 0)


def _check_task(task: str) -> None:
    """Refuse a misspelt task before anything that is missing."""
    from attnlab.tasks import load

    if task:
        load(task)


def describe_run(task: str, settings: dict[str, Any], extent: dict[str, Any], segments: list[str]) -> "RunSpec":
    """Return the run that the options describe. extent: steps, epochs and batch of every segment."""
    from attnlab.training.spec import LANGUAGE

    _check_task(task)
    if settings.get("start.architecture") is None and settings.get("start.checkpoint") is None:
        raise RequestError("a model is missing; give --architecture TYPE for a new one (bert, gpt2 …), or --start PATH")
    texts = [split_assignments(text.split(","), "--segment") for text in segments] or [{}]
    content: dict[str, Any] = {
        "task": task, "data": {"train": ""},
        "segments": [{**extent, **{name: read_value(value) for name, value in text.items()}} for text in texts],
    }  # fmt: skip
    put_settings(content, settings)
    parts = content["segments"]
    for part in parts if isinstance(parts, list) else ():  # --set may have replaced them by anything
        if isinstance(part, dict) and "steps" not in part and "epochs" not in part:
            part["epochs"] = 1
    run = check_run(content)
    return run.model_copy(update={"data": run.data.choose_packing()}) if task.lower() in LANGUAGE else run


def put_settings(content: dict[str, Any], settings: dict[str, Any]) -> None:
    """Set values at their paths; `config.` is the model's config, as in a study."""
    from attnlab.studies.file.overrides import set_value

    for path, value in settings.items():
        set_value(content, f"start.{path}" if path.startswith("config.") else path, value, "--set")


def check_run(content: dict[str, Any]) -> "RunSpec":
    """Return a run from plain data; all mistakes are one message."""
    from pydantic import ValidationError

    from attnlab.training import RunSpec
    from attnlab.training.spec import describe_error

    try:
        return RunSpec.model_validate(content)
    except ValidationError as error:
        raise RequestError(describe_error(error, RunSpec)) from error


def read_run(folder: Path, settings: dict[str, Any], chosen: list[str]) -> "RunSpec":
    """Read the run of a folder; settings that decide its result cannot change."""
    from attnlab.training import RunSpec
    from attnlab.training.record.files import read_json
    from attnlab.training.record.folder import WATCHING
    from attnlab.training.spec import WITHOUT_EFFECT

    if not (folder / "config.json").exists():
        raise RequestError(f"{folder} holds no run to resume; to start one, name a task: attnlab train clm --out …")
    fixed = [path for path in settings if path not in WITHOUT_EFFECT and not path.endswith(".micro_batch")]
    if changed := [*(FLAGS.get(path, f"--set {path}") for path in fixed), *chosen]:
        raise RequestError(
            f"a resumed run keeps its settings, and {changed[0]} was given; start another run in another folder"
        )
    content = RunSpec.of(read_json(folder / "config.json")).model_dump(mode="json")
    if (folder / WATCHING).exists():
        content |= read_json(folder / WATCHING)
    put_settings(content, settings)
    return check_run(content)


def print_result(result: "Result", folder: Path) -> None:
    """Print the result of a run."""
    rows: list[tuple[str, ...]] = []
    evaluations = {"last": result.last, "best": result.best}
    for name, evaluation in evaluations.items():
        if evaluation is not None:
            figures = "  ".join(f"{figure} {value:.6g}" for figure, value in evaluation.figures.items())
            rows.append((name, f"{evaluation.step:,}", figures))
    print(f"{folder}: {result.sentence}")
    if rows:
        print_table(("", "step", "figures"), rows)
    elif result.status == "finished":
        print("It was not evaluated, because it has no held-out data: start a run in another folder with --dev FILE.")
    for note in dict.fromkeys(entry.note for entry in evaluations.values() if entry is not None and entry.note):
        print(note)
    numbers = ", ".join(f"{name} {number:,}" for name, number in result.parameters.items())
    print(f"parameters: {numbers}; {result.tokens:,} tokens in {result.seconds:,.1f} s of updates")
