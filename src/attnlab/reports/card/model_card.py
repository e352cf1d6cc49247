"""The card of an exported model: what it is, how it was trained and is loaded, its scores, and its limitations."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attnlab.install import mechanism_of
from attnlab.mechanisms import Mechanism
from attnlab.studies.plan.provenance import VERSIONS, collect_provenance
from attnlab.training import Evaluation, count_parameters
from attnlab.training.job.restore import Restored
from attnlab.training.record.folder import read_num_steps, read_result

from .stage_files import StageFile
from .study_context import StudyContext, find_study_context

PIPELINES = {
    "AutoModelForCausalLM": "text-generation", "AutoModelForMaskedLM": "fill-mask",
    "AutoModelForQuestionAnswering": "question-answering",
    "AutoModelForSequenceClassification": "text-classification",
}  # fmt: skip
"""What the hub calls the use of a head."""
BASELINE = Mechanism.parse("dot | softmax")
FEW_TOKENS = 1e9


def write_model_card(
    found: Restored, folder: Path, checkpoint: str, num_merged: int, carried: Sequence[StageFile]
) -> str:
    """Write the card of a run's model.

    num_merged: LoRA adapters that were merged into its weights. carried: files of stages that stand beside it.
    """
    member, versions = find_study_context(folder), collect_provenance()
    parts = {
        "": f"{_write_heading(folder, member)}\n\n{_write_opening(found, folder, checkpoint, num_merged)}",
        "How to load it": _write_loading(found, carried),
        "Training": _write_training(found),
        "Data": _write_data(found, member),
        "Figures": _write_figures(found, checkpoint),
        "What its study says": _write_verdict(member),
        "Limitations": _write_limitations(found, folder),
        "Versions": _write_list({name: versions[name] for name in (*VERSIONS, "python")}),
    }
    body = "\n\n".join(f"## {title}\n\n{text}" if title else text for title, text in parts.items())
    return f"{_write_front_matter(found)}\n{body}\n"


def _write_front_matter(found: Restored) -> str:
    """Write what the hub reads; a text in JSON is one in YAML."""
    kind = str(found.model.config.model_type)
    facts: dict[str, Any] = {"library_name": "attnlab", "tags": ["attnlab", "attention", kind, found.run.task]}
    if found.task.head in PIPELINES and found.tokenizer is not None:
        facts["pipeline_tag"] = PIPELINES[found.task.head]
    lines = [f"{name}: {json.dumps(value)}" for name, value in facts.items()]
    return "\n".join(["---", *lines, "---", ""])


def _write_heading(folder: Path, member: StudyContext | None) -> str:
    """Name the model: by its arm and study where it has them, else by the folder of its run."""
    if member is None:
        return f"# {folder.name}\n\nA model trained by attnlab, a test bench for attention mechanisms."
    return (
        f"# {member.title}\n\nA model trained by attnlab, a test bench for attention mechanisms: the run "
        f"`{member.run.id}` ({member.run.title})."
    )


def _write_opening(found: Restored, folder: Path, checkpoint: str, num_merged: int) -> str:
    """Say what the model is."""
    counts = count_parameters(found.model)
    parts = {name: number for name, number in counts.total.items() if number}
    facts = {
        "Mechanism": f"`{mechanism_of(found.model)}`",
        "Architecture": f"{found.model.config.model_type} ({type(found.model).__name__})",
        "Started from": _describe_start(found),
        "Parameters": f"{counts.num_total:,}: " + ", ".join(f"{name} {number:,}" for name, number in parts.items()),
        "Tuned": _describe_tuning(found, num_merged),
        "Task": found.run.task,
        "Checkpoint": f"the {checkpoint} one, step {found.state.step:,} of {_describe_length(folder)}",
    }
    return _write_list(facts)


def _describe_start(found: Restored) -> str:
    """Say what weights training began with."""
    start = found.run.start
    return f"fresh weights of {start.architecture}" if start.architecture is not None else f"`{start.checkpoint}`"


def _describe_length(folder: Path) -> str:
    """Say how many updates a run has, and whether it came to its end."""
    num_steps, result = read_num_steps(folder), read_result(folder)
    said = "an unknown number" if num_steps is None else f"{num_steps:,}"
    return f"{said}; the run {'has not ended' if result is None else f'is {result.status}'}"


def _describe_tuning(found: Restored, num_merged: int) -> str:
    """Describe which part of the model was trained."""
    mode = found.run.tuning.mode
    said = {"full": "everything", "head": "the head alone", "prefix": "a prefix of every layer, which is saved with it"}
    if num_merged:
        return f"LoRA; its {num_merged} adapters are merged into the weights, the same but for rounding"
    return said.get(mode, mode)


def _write_loading(found: Restored, carried: Sequence[StageFile]) -> str:
    """Write how the folder is loaded, and that plain `from_pretrained` refuses it."""
    tokenizer = "tokenizer = transformers.AutoTokenizer.from_pretrained(FOLDER)\n" * (found.tokenizer is not None)
    imports = "import attnlab\n" + "import transformers\n" * (found.tokenizer is not None)
    stages = "".join(f"runpy.run_path(FOLDER + {json.dumps('/' + own.name, ensure_ascii=False)})\n" for own in carried)
    runs = "import runpy\n\n" * bool(carried)
    code = f"```python\n{runs}{imports}\n{stages}model = attnlab.load(FOLDER)\n{tokenizer}```"
    code += _describe_stage_files(carried)
    refuses = (
        "Plain `from_pretrained` refuses this folder: it would build the model without its mechanism, and compute "
        "something else."
    )
    if not _is_plain(found):
        return f"{code}\n\n{refuses}"
    return (
        f"{code}\n\nPlain `from_pretrained` refuses this folder, as every one of attnlab. But the mechanism is the "
        "baseline and has nothing of its own to learn, so the weights are those of a plain model, which one line "
        "writes:\n\n```python\nattnlab.uninstall(attnlab.load(FOLDER)).save_pretrained(ANOTHER)\n```"
    )


def _describe_stage_files(carried: Sequence[StageFile]) -> str:
    """Say what the files of stages are, if any: code that whoever loads the model runs."""
    if not carried:
        return ""
    files = ", ".join(f"`{own.name}` (sha256 `{own.sha256}`)" for own in carried)
    notes = "".join(f" {own.note}." for own in carried if own.note)
    return (
        f"\n\nIts mechanism has a stage that attnlab does not bring. It comes from {files} in this folder, which "
        f"`runpy` runs: read it first.{notes}"
    )


def _is_plain(found: Restored) -> bool:
    """Tell whether a plain model computes the same: the baseline mechanism without learned parameters or a prefix."""
    total = count_parameters(found.model).total
    return mechanism_of(found.model) == BASELINE and not total["mechanism"] and not total["prefix"]


def _write_training(found: Restored) -> str:
    """Write the settings of the run, and what it took."""
    settings = found.run
    segments = "; ".join(
        f"{one.name}: {f'{one.steps:,} steps' if one.steps is not None else f'{one.epochs:g} epochs'} of "
        f"{one.batch} rows"
        for one in settings.segments
    )
    optimizer, schedule = settings.optimizer, settings.schedule
    return _write_list({
        "Segments": segments,
        "Optimizer": f"{optimizer.name}, learning rate {optimizer.lr:g}, weight decay {optimizer.weight_decay:g}",
        "Schedule": f"{schedule.kind}, warmup {schedule.warmup:g}, floor {schedule.floor:g}",
        "Clipped at": settings.clip, "Precision": found.precision, "Seed": settings.seed,
        "Tokens seen": f"{found.state.tokens:,}", "Seconds of updates": f"{found.state.seconds:,.1f}",
    })  # fmt: skip


def _write_data(found: Restored, member: StudyContext | None) -> str:
    """Name what the model was trained and evaluated on, with hashes."""
    named = found.run.data
    facts: dict[str, Any] = {
        "Trained on": f"`{named.train or found.run.task}`",
        "Evaluated on": f"`{named.dev}`" if named.dev else "the dev split of the same, where it has one",
    }
    for what, number in (("training", named.num_train), ("evaluation", named.num_dev)):
        if number is not None:
            facts[f"Examples of {what}"] = f"the first {number:,}"
    for number, identity in enumerate(found.streams):
        facts[f"Hash of the batches of segment {number + 1}"] = f"`{identity}`"
    for source, splits in ({} if member is None else member.data).items():
        for split, digest in splits.items():
            facts[f"Hash of {source}, {split}"] = f"`{digest}`"
    return _write_list(facts)


def _write_figures(found: Restored, checkpoint: str) -> str:
    """Write what the model reached at this checkpoint."""
    state = found.state
    seen: Evaluation | None = state.best if checkpoint == "best" else state.last
    if seen is None:
        return "The run was not evaluated up to this checkpoint."
    rows = "\n".join(f"| {name} | {value:.6g} |" for name, value in seen.figures.items())
    note = f"\n\n{seen.note}" if seen.note else ""
    return f"After step {seen.step:,}; `{seen.primary}` decides.\n\n| figure | |\n|---|---|\n{rows}{note}"


def _write_verdict(member: StudyContext | None) -> str:
    """Write the verdict of the run's arm, where the run is one of a study that has come to its end."""
    if member is None:
        return "The run is not one of a study: nothing was compared, and one run is no evidence that a mechanism helps."
    return member.sentence


def _write_limitations(found: Restored, folder: Path) -> str:
    """Write the limitations of the model and of its card."""
    said = [
        "This is one run of one seed; its figures are those of the data above and of no other.",
        "What it was trained on was not examined for this card: it may hold errors, private text or prejudice, and so "
        "may what the model says.",
        "No licence is stated here: that of the data and of the weights it started from decides.",
    ]
    result = read_result(folder)
    if result is None:
        said.append("The run has not ended: a later checkpoint may differ.")
    elif result.status == "diverged":
        said.append("The run diverged: its weights are of no use but to look at.")
    if found.state.tokens < FEW_TOKENS:
        said.append(f"It saw {found.state.tokens:,} tokens, few beside those of published models.")
    return "\n".join(f"- {one}" for one in said)


def _write_list(facts: Mapping[str, Any]) -> str:
    """Write facts as a list."""
    return "\n".join(f"- **{name}:** {value}" for name, value in facts.items())
