"""The settings of a run: written and read again, declared once, and a wrong one says what it should have been."""

import ast
import math
from pathlib import Path
from typing import Any

import pytest

import attnlab
from attnlab.errors import TrainingError
from attnlab.studies.file.design import Arm, Design, Phase, Size
from attnlab.training import Data, Optimizer, RunSpec, Schedule, Segment, Settings, Start, Tuning
from attnlab.training.spec import DataSource, Model, Watching, find_run_folder, list_differences

SECTIONS = (Segment, Optimizer, Schedule, Tuning, Watching, DataSource, Model)


def run(**changes: Any) -> RunSpec:
    return RunSpec(**{"task": "clm", "start": Start(architecture="gpt2", config={"n_layer": 2}), **changes})


def test_a_run_is_read_as_it_was_written() -> None:
    segments = (Segment(name="a", steps=2, lr=0.1), Segment(name="b", epochs=1.5, length=9))
    written = run(segments=segments, seed=3, optimizer=Optimizer(eps=1e-6), tuning=Tuning(targets=("query",)))
    assert RunSpec.of(written.config) == written


@pytest.mark.parametrize(
    "config",
    [{}, {"model_type": "bert"}, {"settings": {"stages": []}, "task": "clm"}],
    ids=["nothing", "a model", "an older run"],
)
def test_the_config_of_something_else_is_refused(config: dict[str, Any]) -> None:
    with pytest.raises(TrainingError, match=r"does not describe a run .* belongs to a model"):
        RunSpec.of(config)


def test_what_decides_no_result_is_not_in_the_config() -> None:
    assert run().config == run(log_every=3, threads=2, trackers=("wandb",), title="a").config
    assert run().config != run(patience=3).config


def test_a_changed_copy_is_checked() -> None:
    assert run().replace(seed=4).seed == 4
    with pytest.raises(TrainingError, match="clip: should be greater than 0, not -1"):
        run().replace(clip=-1)


def test_the_folder_of_a_run_is_known_by_its_checkpoints(tmp_path: Path) -> None:
    (tmp_path / "run" / "checkpoints").mkdir(parents=True)
    folder = tmp_path / "run"
    assert find_run_folder(str(folder)) == (folder, False)
    assert find_run_folder(f"{folder}:last") == (folder, False)
    assert find_run_folder(f"{folder}:best") == (folder, True)
    assert find_run_folder(f"{folder}:worst") is None
    assert find_run_folder(str(tmp_path)) is None


@pytest.mark.parametrize(
    ("kind", "values", "said"),
    [
        (Segment, {}, "Segment: give steps or epochs, one of the two"),
        (Segment, {"steps": 1, "epochs": 1}, "give steps or epochs, one of the two"),
        (Segment, {"steps": 0}, "Segment: steps: should be greater than or equal to 1, not 0"),
        (Segment, {"steps": 2.0}, r"steps: should be a valid integer, not 2\.0"),
        (Segment, {"steps": True}, "steps: should be a valid integer, not True"),
        (Segment, {"steps": 10**400}, "steps: "),
        (Segment, {"epochs": 0}, "epochs: should be greater than 0"),
        (Segment, {"epochs": math.inf}, "epochs: should be"),
        (Segment, {"steps": 1, "batch": 0}, "batch: "),
        (Segment, {"steps": 1, "micro_batch": 0}, "micro_batch: "),
        (Segment, {"steps": 1, "window": -1}, "window: "),
        (Segment, {"steps": 1, "lr": -1}, "lr: should be greater than or equal to 0"),
        (Segment, {"stps": 1}, "there is no setting 'stps', did you mean 'steps'"),
        (run, {"length": 64}, "there is no setting 'length'; write segments.0.length or tuning.length. There are"),
        (run, {"data": {"train": "a", "warmup": 9}}, "there is no setting 'data.warmup'. There are"),
        (
            Optimizer,
            {"name": "adamm"},
            "name: should be 'adamw', 'adam', 'sgd' or 'muon', not 'adamm', did you mean 'adam",
        ),
        (Optimizer, {"lr": math.nan}, "lr: should be a finite number, not nan"),
        (Optimizer, {"betas": (0.9,)}, "betas.1: field required"),
        (Optimizer, {"betas": (0.9, 1.0)}, "betas.1: should be less than or equal to"),
        (Optimizer, {"weight_decay": -0.1}, "weight_decay: "),
        (Schedule, {"kind": "cosin"}, "did you mean 'cosine'"),
        (Schedule, {"floor": 2}, "floor: should be less than or equal to 1, not 2"),
        (Tuning, {"mode": "promt"}, "not 'promt', did you mean 'prompt'"),
        (Tuning, {"rank": 2.0}, "rank: should be a valid integer"),
        (Tuning, {"alpha": 0}, "alpha: should be greater than 0"),
        (Tuning, {"dropout": 1.0}, "dropout: "),
        (Tuning, {"targets": "query"}, "targets: should be a valid tuple, not 'query'"),
        (Settings, {"segments": ()}, "segments: "),
        (Settings, {"precision": "fp16"}, "precision: should be 'auto', 'fp32' or 'bf16', not 'fp16'"),
        (Settings, {"clip": 0}, "clip: should be greater than 0"),
        (Settings, {"divergence": 0.5}, "divergence: should be greater than or equal to 1"),
        (Settings, {"patience": 0}, "patience: "),
        (Settings, {"log_every": None}, "log_every: should be a valid integer, not None"),
        (Settings, {"optimizer": {"lrr": 1}}, "no setting 'optimizer.lrr', did you mean 'lr'"),
        (Data, {}, "train: field required"),
        (Data, {"train": "", "num_dev": 0}, "num_dev: should be greater than or equal to 1, not 0"),
        (Data, {"train": "", "num_train": 3, "is_packed": True}, "counts examples, and packed rows are not examples"),
        (Start, {}, "give architecture .* or checkpoint, one of the two"),
        (Start, {"architecture": "gpt2", "checkpoint": "x"}, "one of the two; got 'gpt2' and 'x'"),
        (Start, {"architecture": "gpt2", "config": {"a": object()}}, "config.a: give a text, a finite number"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "-".join(value) if isinstance(value, dict) else "",
)
def test_a_wrong_setting_says_what_it_should_be(kind: Any, values: dict[str, Any], said: str) -> None:
    with pytest.raises(TrainingError, match=said):
        kind(**values)


@pytest.mark.parametrize(
    ("segment", "steps_per_epoch", "steps"),
    [
        (Segment(steps=7), 3, 7),
        (Segment(epochs=2), 3, 6),
        (Segment(epochs=0.5), 3, 2),
        (Segment(epochs=0.1), 10, 1),
        (Segment(epochs=0.3), 10, 3),
        (Segment(epochs=1e-6), 10, 1),
    ],
    ids=["steps", "epochs", "half", "a tenth", "three tenths", "less than a step"],
)
def test_epochs_may_be_fractions(segment: Segment, steps_per_epoch: int, steps: int) -> None:
    assert segment.num_steps(steps_per_epoch) == steps


def test_differences_are_named_by_their_place() -> None:
    one = {"a": 1, "b": {"c": [1, {"d": 2}]}, "only": None}
    other = {"a": 1, "b": {"c": [1, {"d": 3}]}, "new": 5}
    assert list_differences(one, one) == []
    assert list_differences(one, other) == ["b.c.1.d (2, there 3)", "new (None, there 5)"]


def test_a_study_has_every_setting_of_a_run() -> None:
    assert set(Settings.model_fields) <= set(Phase.model_fields)
    assert set(Settings.model_fields) <= set(RunSpec.model_fields)
    assert set(Model.model_fields) <= set(Size.model_fields)


def is_schema(node: ast.ClassDef) -> bool:
    bases = {base.id for base in node.bases if isinstance(base, ast.Name)}
    return bool(bases & {"BaseModel", "Part", "Section", *(section.__name__ for section in (*SECTIONS, Settings))})


def test_no_setting_is_declared_twice() -> None:
    """Only the spec declares a setting: a field of its sections is annotated in no other class with a default."""
    names = {name for section in (*SECTIONS, Settings) for name in section.model_fields} - {"name", "config", "length"}
    declared = []
    root = Path(attnlab.__file__).parent
    for room in ("studies", "cli", "training"):
        for file in sorted((root / room).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef) and file.name != "spec.py" and is_schema(node):
                    declared += [
                        f"{file.relative_to(root)}: {node.name}.{item.target.id}"
                        for item in node.body
                        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
                        and item.value is not None and item.target.id in names
                    ]  # fmt: skip
    assert declared == []
    own = {*Arm.model_fields, *Design.model_fields}
    assert not own & set(Settings.model_fields)


def test_a_second_rate_is_for_muon_alone() -> None:
    with pytest.raises(TrainingError, match=r"adamw_lr is for muon; with 'sgd', all parameters have optimizer\.lr"):
        run(optimizer=Optimizer(name="sgd", adamw_lr=0.1))
    with pytest.raises(TrainingError, match=r"needs an optimizer\.lr above 0"):
        run(optimizer=Optimizer(name="muon", adamw_lr=0.1, lr=0.0))
    assert run(optimizer=Optimizer(name="muon", adamw_lr=0.1)).optimizer.adamw_lr == 0.1
