"""The card of an exported model: what it is, how it was trained and is loaded, its scores, and its limitations."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attnlab.install import mechanism_of
from attnlab.mechanisms import Mechanism
from attnlab.studies.plan.provenance import VERSIONS, collect_provenance
from attnlab.training import count_parameters
from attnlab.training.job.restore import Restored
from attnlab.training.record.folder import read_num_steps, read_result
from attnlab.visible import make_visible

from .stage_files import StageFile
from .study_context import StudyContext, find_study_context

PIPELINES = {
    "AutoModelForCausalLM": "text-generation", "AutoModelForMaskedLM": "fill-mask",
    "AutoModelForQuestionAnswering": "question-answering",
    "AutoModelForSequenceClassification": "text-classification",
}  # fmt: skip
"""The pipeline tag of the Hugging Face hub for each head."""
BASELINE = Mechanism.parse("dot | softmax")
FEW_TOKENS = 1e9
TUNED = {"full": "everything", "head": "the head alone", "prefix": "a prefix of every layer, which is saved with it"}


def write_model_card(
    restored: Restored, folder: Path, checkpoint: str, num_merged: int, stage_files: Sequence[StageFile]
) -> str:
    """Write the card of a run's model.

    num_merged: LoRA adapters that were merged into its weights. stage_files: plugin files exported with it.
    """
    context, versions = find_study_context(folder), collect_provenance()
    name, origin = (folder.name, "") if context is None else (
        context.title, f": the run `{context.run.id}` ({context.run.title})"
    )  # fmt: skip
    heading = f"# {name}\n\nA model trained by attnlab, a test bench for attention mechanisms{origin}."
    no_study = "The run is not part of a study: nothing was compared, and one run is not evidence that it helps."
    parts = {
        "": f"{heading}\n\n{_write_overview(restored, folder, checkpoint, num_merged)}",
        "How to load it": _write_loading(restored, stage_files),
        "Training": _write_training(restored),
        "Data": _write_data(restored, context),
        "Figures": _write_figures(restored, checkpoint),
        "Result of its study": no_study if context is None else context.sentence,
        "Limitations": _write_limitations(restored, folder),
        "Versions": _write_list({name: versions[name] for name in (*VERSIONS, "python")}),
    }
    body = "\n\n".join(f"## {title}\n\n{text}" if title else text for title, text in parts.items())
    return make_visible(f"{_write_front_matter(restored)}\n{body}\n")


def _write_front_matter(restored: Restored) -> str:
    """Write the metadata that the hub reads: YAML, of which JSON values are a part."""
    kind = str(restored.model.config.model_type)
    facts: dict[str, Any] = {"library_name": "attnlab", "tags": ["attnlab", "attention", kind, restored.run.task]}
    if restored.task.head in PIPELINES and restored.tokenizer is not None:
        facts["pipeline_tag"] = PIPELINES[restored.task.head]
    return "\n".join(["---", *(f"{name}: {json.dumps(value)}" for name, value in facts.items()), "---", ""])


def _write_overview(restored: Restored, folder: Path, checkpoint: str, num_merged: int) -> str:
    counts, start, mode = count_parameters(restored.model), restored.run.start, restored.run.tuning.mode
    origin = f"`{start.checkpoint}`" if start.architecture is None else f"new weights of {start.architecture}"
    parts = ", ".join(f"{name} {number:,}" for name, number in counts.total.items() if number)
    merged = f"LoRA; its {num_merged} adapters are merged into the weights, which changes them by rounding only"
    num_steps, result = read_num_steps(folder), read_result(folder)
    length = "an unknown number" if num_steps is None else f"{num_steps:,}"
    status = "has not ended" if result is None else f"is {result.status}"
    return _write_list({
        "Mechanism": f"`{mechanism_of(restored.model)}`",
        "Architecture": f"{restored.model.config.model_type} ({type(restored.model).__name__})",
        "Started from": origin,
        "Parameters": f"{counts.num_total:,}: {parts}",
        "Tuned": merged if num_merged else TUNED.get(mode, mode),
        "Task": restored.run.task,
        "Checkpoint": f"the {checkpoint} one, step {restored.state.step:,} of {length}; the run {status}",
    })  # fmt: skip


def _write_loading(restored: Restored, stage_files: Sequence[StageFile]) -> str:
    """Write how the folder is loaded, and that `from_pretrained` refuses it without attnlab."""
    has_tokenizer = restored.tokenizer is not None
    tokenizer = "tokenizer = transformers.AutoTokenizer.from_pretrained(FOLDER)\n" * has_tokenizer
    imports = "import runpy\n\n" * bool(stage_files) + "import attnlab\n" + "import transformers\n" * has_tokenizer
    paths = [json.dumps(f"/{file.name}", ensure_ascii=False) for file in stage_files]
    stages = "".join(f"runpy.run_path(FOLDER + {path})\n" for path in paths)
    text = f"```python\n{imports}\n{stages}model = attnlab.load(FOLDER)\n{tokenizer}```"
    if stage_files:
        files = ", ".join(f"`{file.name}` (sha256 `{file.sha256}`)" for file in stage_files)
        text += (
            f"\n\nIts mechanism has a stage that is not part of attnlab. It comes from {files} in this folder, which "
            f"`runpy` executes: read it first.{''.join(f' {file.note}.' for file in stage_files if file.note)}"
        )
    total = count_parameters(restored.model).total
    if mechanism_of(restored.model) != BASELINE or total["mechanism"] or total["prefix"]:
        return (
            f"{text}\n\nAfter `import attnlab`, `from_pretrained` of transformers reads it too. Without it, this "
            "folder is refused: the model would be built without its mechanism, and compute something else."
        )
    return (
        f"{text}\n\nAfter `import attnlab`, `from_pretrained` of transformers reads it too. Without it, this folder is "
        "refused, like every folder that attnlab writes. But the mechanism is the baseline and has no parameters, so "
        "the weights are those of a plain model, which one line writes:\n\n```python\n"
        "attnlab.uninstall(attnlab.load(FOLDER)).save_pretrained(ANOTHER)\n```"
    )


def _write_training(restored: Restored) -> str:
    settings = restored.run
    optimizer, schedule = settings.optimizer, settings.schedule
    rates = f"{optimizer.lr:g}{'' if optimizer.adamw_lr is None else f' (adamw: {optimizer.adamw_lr:g})'}"
    segments = [
        f"{segment.name}: "
        f"{f'{segment.steps:,} steps' if segment.steps is not None else f'{segment.epochs:g} epochs'} of "
        f"{segment.batch} rows"
        for segment in settings.segments
    ]
    return _write_list({
        "Segments": "; ".join(segments),
        "Optimizer": f"{optimizer.name}, learning rate {rates}, weight decay {optimizer.weight_decay:g}",
        "Schedule": f"{schedule.kind}, warmup {schedule.warmup:g}, floor {schedule.floor:g}",
        "Clipped at": settings.clip, "Precision": restored.precision, "Seed": settings.seed,
        "Tokens seen": f"{restored.state.tokens:,}", "Seconds of updates": f"{restored.state.seconds:,.1f}",
    })  # fmt: skip


def _write_data(restored: Restored, context: StudyContext | None) -> str:
    data = restored.run.data
    facts = {
        "Trained on": f"`{data.train or restored.run.task}`",
        "Evaluated on": f"`{data.dev}`" if data.dev else "the dev split of the same source, if it has one",
    }
    for what, number in (("training", data.num_train), ("evaluation", data.num_dev)):
        if number is not None:
            facts[f"Examples of {what}"] = f"the first {number:,}"
    for number, digest in enumerate(restored.streams, start=1):
        facts[f"Hash of the batches of segment {number}"] = f"`{digest}`"
    for source, splits in ({} if context is None else context.data).items():
        facts |= {f"Hash of {source}, {split}": f"`{digest}`" for split, digest in splits.items()}
    return _write_list(facts)


def _write_figures(restored: Restored, checkpoint: str) -> str:
    evaluation = restored.state.best if checkpoint == "best" else restored.state.last
    if evaluation is None:
        return "The run was not evaluated up to this checkpoint."
    rows = "\n".join(f"| {name} | {value:.6g} |" for name, value in evaluation.figures.items())
    note = f"\n\n{evaluation.note}" if evaluation.note else ""
    return f"After step {evaluation.step:,}; `{evaluation.primary}` decides.\n\n| figure | |\n|---|---|\n{rows}{note}"


def _write_limitations(restored: Restored, folder: Path) -> str:
    limitations = [
        "This is one run of one seed; its figures hold for the data above and for no other.",
        "The training data was not examined for this card: it may contain errors, private text or prejudice, and the "
        "model may reproduce them.",
        "No licence is stated here: those of the data and of the weights it started from apply.",
    ]
    result, tokens = read_result(folder), restored.state.tokens
    if result is None:
        limitations.append("The run has not ended: a later checkpoint may differ.")
    elif result.status == "diverged":
        limitations.append("The run diverged: its weights are of use for diagnosis only.")
    if tokens < FEW_TOKENS:
        limitations.append(f"It saw {tokens:,} tokens, few compared with published models.")
    return "\n".join(f"- {limitation}" for limitation in limitations)


def _write_list(facts: Mapping[str, Any]) -> str:
    return "\n".join(f"- **{name}:** {value}" for name, value in facts.items())
