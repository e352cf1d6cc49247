"""`attnlab new`: a study file for a mechanism, ready to run and to edit. In a terminal it asks what is not given."""

import json
import math
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import typer

from attnlab.cli.options import Plugins
from attnlab.cli.plugin import load_plugins
from attnlab.errors import RequestError
from attnlab.inputs import expand_path
from attnlab.machine import find_command

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,50}")
MANY_EPOCHS = 20
"""A text that is read more often is memorised."""
TEMPLATE = Path(__file__).with_name("new.toml")
EMBEDDED = "embedded:pydoc?paragraphs=1"
PROMPTS = ["if the object is", "the import statement"]
MANY_BEGINNINGS = 20
"""Of these the first two that fit become prompts."""
NUM_POSITIONS, NUM_SAMPLED = 64, 24
"""Positions of the model, and tokens that continue a prompt."""
RECALL_STEPS = 500
"""Softmax attention solves recall after 300 updates."""
MIN_SEEDS = 5
"""The fewest that give a verdict."""
DEFAULT_SEEDS = 7
"""They find a difference of 1.5 SDs with 75 % power, 5 seeds with 35 % and 8 with 83 % (`compute_power`). At the 16 CPU
minutes of ten runs (docs/studies.md), `make demo` and a study of a text stay below 15 minutes with 7, not with 8."""
POWER, LEVEL = 0.8, 0.05

Task = Literal["text", "recall", "both"]
T = TypeVar("T")


@dataclass(frozen=True)
class ModelSize:
    """The model and its training, as measured to learn (docs/studies.md)."""

    name: str
    vocab: int
    layers: int
    width: int
    inner: int
    init: float
    length: int
    steps: int
    steps_of_text_alone: int
    """Without recall there is time for more."""
    batch: int
    lr: str
    characters: float
    """Of English text per token."""
    seconds: tuple[float, float]
    """Of an update of text and of recall on one core, as `attnlab run --dry-run` measured them on an AMD EPYC."""
    vocab_reason: str
    width_reason: str
    inner_reason: str


SIZES = {
    "mini": ModelSize(
        "mini", 100, 2, 64, 8, 0.1, 32, 1000, 2000, 24, "6e-3", 1.24, (0.04, 0.02),
        "little more than letters, which a small model learns in minutes",
        "small, so that a run takes minutes on one core",
        "recall is attention's work: with a wider feed-forward layer it comes later (text alone needs 256)",
    ),
    "small": ModelSize(
        "small", 1000, 4, 128, 512, 0.05, 64, 2000, 2000, 32, "3e-3", 2.55, (0.3, 0.1),
        "pieces of words",
        "large enough to use 1,000 pieces of words; a run takes some ten minutes on one core",
        "four times the width, as in GPT-2",
    ),
}  # fmt: skip


def new(
    mechanisms: Annotated[
        list[str], typer.Argument(metavar="MECHANISM…", help="Lines, or names of the catalog: an arm each.")
    ],
    out: Annotated[str, typer.Option(metavar="FILE", help="The study file to write.")] = "study.toml",
    name: Annotated[
        list[str] | None, typer.Option(help="The name of an arm, repeatable; default: from the line.")
    ] = None,
    baseline: Annotated[
        str, typer.Option(metavar="LINE", help="The mechanism they are compared with.")
    ] = "dot | softmax",
    text: Annotated[str | None, typer.Option(metavar="FILE", help="Text; default: Python's documentation.")] = None,
    task: Annotated[Task | None, typer.Option(help="Default: both, and text with --text.")] = None,
    size: Annotated[str | None, typer.Option(metavar="mini|small", help="The model; default: mini, minutes.")] = None,
    seeds: Annotated[int | None, typer.Option(help="Paired seeds; default: 7.")] = None,
    steps: Annotated[
        int | None, typer.Option(min=4, help="Updates of a run, of text if there is some; default: as measured.")
    ] = None,
    smallest: Annotated[
        float | None, typer.Option(help="The smallest difference worth having, in percent; default: 5.")
    ] = None,
    plugin: Plugins = None,
) -> int:
    """Write a study file that compares mechanisms with a baseline, on your text or on data that comes with attnlab."""
    load_plugins(plugin)
    import jinja2

    from attnlab.mechanisms import parse_line
    from attnlab.studies.file.reading import read_design

    standard = str(parse_line(baseline))
    arms = name_arms([str(parse_line(mechanism)) for mechanism in mechanisms], standard, name or [])
    target = expand_path(out)
    if target.exists():
        raise RequestError(f"{target} exists already; give another path with --out FILE")
    if text is None and task is None:
        text = _ask("A file of text to train on (empty: Python's documentation)", str, "") or None
    size = _ask("Size: mini (minutes) or small (hours)", str, "mini") if size is None else size
    seeds = _ask("Paired seeds (5 or more for a verdict)", int, DEFAULT_SEEDS) if seeds is None else seeds
    smallest = _ask("The smallest difference worth having, in percent", float, 5.0) if smallest is None else smallest
    task = task or ("both" if text is None else "text")
    _check_choices(text, task, size, seeds, smallest)
    model = SIZES[size]
    if task == "text":
        inner, default = 4 * model.width, model.steps_of_text_alone
        model = replace(model, inner=inner, steps=default, inner_reason="four times the width, as in GPT-2")
    model = model if steps is None or task == "recall" else replace(model, steps=steps)
    recall_steps = steps if steps is not None and task == "recall" else RECALL_STEPS
    source, text_reason, num_characters, prompts = _examine_text(text, model.vocab)
    flags = "".join(f" --plugin {path}" for path in plugin or [])
    folder = target.with_suffix("") if target.suffix else target.with_name(f"{target.name}-study")
    command = find_command()
    shown_arms = " or ".join(f"{arm} ({line})" for arm, line in arms.items())
    num_comparisons = len(arms) * (2 if task == "both" else 1)
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True, autoescape=False)
    content = environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        arms=arms, study=_name_study([*arms]), baseline=standard, shown_arms=shown_arms, file=out, folder=folder,
        flags=flags, command=command, size=model,
        seeds=list(range(1, seeds + 1)), seed_reason=_explain_seeds(seeds, num_comparisons),
        recall_steps=recall_steps,
        smallest=smallest, num_positions=NUM_POSITIONS, num_sampled=NUM_SAMPLED,
        text=json.dumps(source, ensure_ascii=False), text_reason=text_reason,
        steps_reason=_explain_steps(model, num_characters),
        prompts=json.dumps(prompts, ensure_ascii=False), has_text=task != "recall", has_recall=task != "text",
        what={"text": "text", "recall": "recall", "both": "text and recall"}[task],
    )  # fmt: skip
    write_new(target, content)
    try:
        read_design(target)
    except BaseException:
        target.unlink()
        raise
    compared = " and ".join(f"'{line}'" for line in arms.values())
    print(f"{target} compares {compared} with '{standard}' over {seeds} paired seeds. Run it:")
    print(f"  {command} run {target} --out {folder} --workers 2{flags}   # the same command resumes it")
    print(f"  {command} report {folder} --open                   # the verdict, with curves, costs and audits")
    print(f"A try of every part takes a minute: {command} run {target} --budget smoke --out {folder}-try{flags}")
    updates = model.steps if task != "recall" else 0, recall_steps if task != "text" else 0
    seconds = sum(number * cost for number, cost in zip(updates, model.seconds, strict=True))
    duration = _show_duration(seeds * (1 + len(arms)) / 2 * seconds)
    print(f"After the audits it takes about {duration} on two idle cores, if mechanisms are as fast as softmax; with")
    print(
        "--dry-run the first command times it on this machine. For a shorter run lower --steps, for fewer runs --seeds."
    )
    for warning in _list_warnings(task, model, recall_steps, num_characters):
        print(f"warning: {warning}")
    return 0


def name_arms(lines: Sequence[str], baseline: str, given: Sequence[str]) -> dict[str, str]:
    """Return each line by the name of its arm, as given or after the line; refuse what cannot be compared."""
    if len(given) not in (0, len(lines)):
        raise RequestError(f"each mechanism has a --name or none has; there are {len(lines)} and {len(given)}")
    arms: dict[str, str] = {}
    for number, line in enumerate(lines):
        if line == baseline:
            raise RequestError(f"'{line}' is the baseline itself; give another mechanism, or --baseline LINE")
        if line in arms.values():
            raise RequestError(f"'{line}' is given twice; the arms of a study differ")
        name = given[number] if given else name_arm(line, baseline)
        if not NAME.fullmatch(name) or name == "baseline":
            raise RequestError(f"--name takes letters, digits, - and _, and not 'baseline'; it has '{name}'")
        if name in arms and given:
            raise RequestError(f"--name {name} is given twice; each arm has its own")
        arms[name if name not in arms else f"{name}-{number + 1}"] = line
    return arms


def _name_study(arms: Sequence[str]) -> str:
    name = "-".join(arms)
    return name if NAME.fullmatch(name) else f"{arms[0]}-and-others"


def name_arm(line: str, baseline: str) -> str:
    """Name an arm after its entry in the catalog, or after the stages in which it differs from the baseline."""
    from attnlab.mechanisms.catalog import ENTRIES

    known = next((entry.name for entry in ENTRIES if str(entry.mechanism) == line and entry.name != "baseline"), "")
    usual = {part.strip() for part in baseline.split("|")}
    differing = [part.strip() for part in line.split("|") if part.strip() not in usual]
    stages = [re.split(r"[^A-Za-z0-9_]", part)[0] for part in differing]
    # A line by layer has several mechanisms, and no short name of its own.
    derived = "idea" if ";" in line else "-".join(stages)
    return known or (derived if NAME.fullmatch(derived) and derived != "baseline" else "idea")


def _show_duration(seconds: float) -> str:
    minutes = max(1, round(seconds / 60))
    if minutes > 90:
        return f"{minutes / 60:.0f} hours"
    return f"{minutes} minute{'' if minutes == 1 else 's'}"


def _list_warnings(task: Task, model: ModelSize, recall_steps: int, num_characters: int | None) -> Iterator[str]:
    """Yield what is known to be too little to learn, and a text so short that it is memorised."""
    from attnlab.studies.plan.learning_budget import explain_few_tokens, explain_few_updates

    tokens = model.steps * model.batch * model.length
    if task != "recall":
        yield from filter(None, [explain_few_tokens("text", model.steps, tokens, model.vocab)])
    if task != "text":
        yield from filter(None, [explain_few_updates("recall", "mqar", recall_steps)])
    if task != "recall" and num_characters is not None:
        epochs = tokens * model.characters / max(num_characters, 1)
        if epochs > MANY_EPOCHS:
            yield f"the text is short: it is read about {epochs:.0f} times, so expect it to be memorised"


def _ask(question: str, read: Callable[[str], T], default: T) -> T:
    """Ask on the terminal; without one return the default."""
    if not _is_terminal():
        return default
    answer = input(f"{question} [{default}]: ").strip()
    try:
        return read(answer) if answer else default
    except ValueError as error:
        raise RequestError(f"a number was needed, not '{answer}'") from error


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _check_choices(text: str | None, task: Task, size: str, seeds: int, smallest: float) -> None:
    if size not in SIZES:
        raise RequestError(f"--size is mini or small, not '{size}'")
    if not 1 <= seeds <= 100:
        raise RequestError(f"--seeds is a number from 1 to 100, not {seeds}")
    if not 0 < smallest < 100:
        raise RequestError(f"--smallest is a difference in percent, above 0 and below 100, not {smallest:g}")
    if text is not None and task == "recall":
        raise RequestError("--task recall generates its own data and reads no text; leave out --text or --task")


def _examine_text(text: str | None, vocab_size: int) -> tuple[str, str, int | None, list[str]]:
    """Return the source of the text, what is held out of it, its number of characters, and prompts."""
    if text is None:
        return EMBEDDED, "about 1,300 paragraphs to train on, and 130 that are held out", None, PROMPTS
    from attnlab.data import open_source
    from attnlab.data.sources.holdout import hold_out

    if text.startswith(("embedded:", "hf:")) or expand_path(text).is_dir():
        _check_splits(text)
        return text, "its train split; the dev split is held out", None, PROMPTS
    parts = hold_out(text)
    num_characters, beginnings = 0, list[str]()
    for passage in open_source(parts.train).documents():
        num_characters += len(passage)
        words = passage.split()
        if len(beginnings) < MANY_BEGINNINGS and len(words) > 8:
            beginnings.append(" ".join(words[:4]))
    prompts = _choose_prompts(beginnings, parts.train, vocab_size)
    total = parts.num_train + parts.num_dev
    return text, f"{total:,} documents, of which the last {parts.num_dev:,} are held out", num_characters, prompts


def _choose_prompts(beginnings: Sequence[str], train: str, vocab_size: int) -> list[str]:
    """Return two beginnings of a text that leave room for a sample; the general ones if it has none."""
    from attnlab.data import open_source, train_tokenizer
    from attnlab.training.job.samples import choose_fitting_prompts

    tokenizer = train_tokenizer(open_source(train), "wordpiece", vocab_size)  # the runs take it from the cache
    fitting = choose_fitting_prompts(beginnings, tokenizer, NUM_POSITIONS - NUM_SAMPLED + 1)
    return fitting[:2] or choose_fitting_prompts(PROMPTS, tokenizer, NUM_POSITIONS - NUM_SAMPLED + 1)


def _check_splits(text: str) -> None:
    """Read both splits of a source, so that one that `attnlab run` refuses is refused now."""
    from attnlab.data import open_source
    from attnlab.training.job.build import choose_split

    if text.startswith("hf:"):
        print(f"{text} is not downloaded, and so not checked, before the study runs")
        return
    for split in ("train", "dev"):
        for _ in open_source(text, split=choose_split(text, split)).documents():
            pass


def _explain_seeds(seeds: int, num_comparisons: int) -> str:
    """Return what a number of seeds detects, by the rule of `attnlab plan`."""
    if seeds < MIN_SEEDS:
        return f"fewer than {MIN_SEEDS} give no verdict"
    from attnlab.statistics import Noise, detectable_effect

    def detect(number: int) -> str:
        return f"{detectable_effect(Noise(1.0, math.inf), number, POWER, LEVEL / num_comparisons):.1f} SDs"

    power = f"{100 * POWER:g} % power (attnlab plan)"
    reason = f"find a difference of {detect(seeds)} between paired runs with {power}"
    if seeds == MIN_SEEDS:
        return f"{MIN_SEEDS} are the fewest that give a verdict; they {reason}"
    return f"{seeds} {reason}; {MIN_SEEDS}, the fewest that give a verdict, find {detect(MIN_SEEDS)}"


def _explain_steps(model: ModelSize, num_characters: int | None) -> str:
    """Return what a number of updates is measured by, in words that stay true if it is changed."""
    from attnlab.studies.plan.learning_budget import count_needed_tokens

    needed = count_needed_tokens(model.vocab)
    reason = f"a vocabulary of {model.vocab} needs {needed:,} tokens of training to beat pairs of words"
    if num_characters is None:
        return reason
    length = f"{num_characters / model.characters:.2g}"
    return (
        f"{reason}; the text has about {float(length):,.0f}, and one that is read over {MANY_EPOCHS} times is memorised"
    )


def write_new(target: Path, text: str) -> None:
    """Write a new file; refuse one that exists."""
    try:
        content = text.encode()
        opened = target.open("xb")
    except FileExistsError as error:
        raise RequestError(f"{target} exists already; give another path with --out FILE") from error
    except ValueError as error:
        raise RequestError(f"cannot write {str(target)!r}: {error}") from error
    except OSError as error:
        raise RequestError(f"cannot write {target}: {error.strerror}") from error
    try:
        with opened:
            opened.write(content)
    except OSError as error:
        target.unlink()  # a part of a study file would be taken for one
        raise RequestError(f"cannot write {target}: {error.strerror}") from error
