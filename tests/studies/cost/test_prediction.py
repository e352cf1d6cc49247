"""The time of a study is predicted from its design alone: operations are counted, and unknown sizes are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from transformers import BertConfig

from attnlab.machine import num_cores
from attnlab.studies.cost import prediction
from attnlab.studies.cost.estimate import CostEstimate, estimate_cost
from attnlab.studies.cost.prediction import (
    OPENING,
    START,
    count_size,
    measure_speed,
    predict_audit_seconds,
)
from attnlab.studies.file.reading import read_design
from attnlab.studies.file.recipes import list_recipes
from attnlab.studies.run.workload import Products
from attnlab.studies.study import Study

from ..samples import content


def models(num_layers: int, per_token: float, per_label: float) -> tuple[int, Products]:
    """Return a count of models that train all of their weights."""
    return num_layers, Products(per_token, per_label, 3)


SPEED = (0.01, 1e9)
WORKERS = 2
BERT: dict[str, Any] = {"num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 64}


def design(segment: dict[str, Any], size: dict[str, Any] | None = None, **phase: Any) -> Any:
    """Make a study of one phase and one seed with this segment."""
    made = content(seeds=[1])
    made["phases"] = [{**made["phases"][0], "segments": [segment], **phase}]
    if size is not None:
        made["sizes"] = {"other": size}
    return Study.of(made).design


def text(segment: dict[str, Any], tokenizer: str, task: str = "mlm") -> Any:
    """Make a study of a small BERT on text."""
    size = {"architecture": "bert", "tokenizer": tokenizer, "config": BERT}
    return design(segment, size, task=task, task_settings={})


def count(study: Any) -> tuple[int, Products]:
    """Count the model of a study's first phase and size."""
    return count_size(next(iter(study.sizes.values())), study.phases[0], {})


@pytest.fixture(autouse=True)
def speed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Predict for a machine of known speed."""
    monkeypatch.setattr(prediction, "measure_speed", lambda: SPEED)


def predict(design: Any) -> CostEstimate:
    """Predict the cost of a design."""
    return estimate_cost(Study(design), workers=WORKERS, method="predicted")


def test_a_probe_in_gpt2_has_the_matrices_of_its_config() -> None:
    study = design({"steps": 1, "batch": 16})  # one layer, 16 wide, a vocabulary of 32
    assert count(study) == models(1, 6 * 12 * 16**2, 6 * 32 * 16)


def test_a_masked_model_in_bert_has_the_matrices_of_its_config() -> None:
    layer = 4 * 32**2 + 2 * 32 * 64
    found = count(text({"steps": 1, "batch": 8}, "wordpiece:1000"))
    assert found == models(2, 6 * (2 * layer + 32**2), 6 * 1000 * 32)  # 32² before the vocabulary's head


def test_a_tokenizer_that_is_named_leaves_the_architecture_its_own_vocabulary() -> None:
    assert count(text({"steps": 1, "batch": 8}, "somebody/tokens"))[1].per_label == 6 * BertConfig().vocab_size * 32


def test_an_arm_may_have_a_larger_model() -> None:
    study = design({"steps": 1, "batch": 16})
    size, phase = study.sizes["tiny"], study.phases[0]
    assert count_size(size, phase, {"n_layer": 3}) == models(3, 3 * 6 * 12 * 16**2, 6 * 32 * 16)


def test_time_is_that_of_updates_evaluations_starts_and_audits() -> None:
    study = design({"steps": 100, "batch": 16})
    found = predict(study)
    update = 0.01 + 16 * 24 * 6 * (12 * 16**2 + 32 * 16) / 1e9
    run = START + (1 + prediction.EVALUATIONS) * 100 * update
    assert found.num_runs == len(study.arms)
    assert found.seconds == pytest.approx(
        OPENING + predict_audit_seconds(study) + found.num_runs * run / WORKERS * crowding()
    )
    assert found.unknown == ()


def crowding() -> float:
    """How much longer runs take where there are fewer cores than workers."""
    return max(1.0, WORKERS / num_cores())


def test_a_masked_model_asks_its_head_at_hidden_tokens_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prediction, "measure_speed", lambda: (0.0, 1.0))
    study = text({"steps": 1, "batch": 8, "length": 10}, "wordpiece:1000")
    _, known = count(study)
    run = (1 + prediction.EVALUATIONS) * 80 * (known.per_token + 0.15 * known.per_label) * crowding()
    assert predict(study).seconds == pytest.approx(run * len(study.arms) / WORKERS, rel=1e-4)


def seconds(segment: dict[str, Any], **phase: Any) -> float:
    """Estimate a study with this segment."""
    found = predict(design(segment, **phase)).seconds
    assert found is not None
    return found


def test_more_work_takes_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = seconds({"steps": 100, "batch": 16})
    assert seconds({"steps": 101, "batch": 16}) > usual
    assert seconds({"steps": 100, "batch": 17}) > usual
    assert seconds({"steps": 100, "batch": 16, "micro_batch": 4}) > usual
    for slower in ((0.02, 1e9), (0.01, 1e8)):
        monkeypatch.setattr(prediction, "measure_speed", lambda slower=slower: slower)
        assert seconds({"steps": 100, "batch": 16}) > usual


def test_epochs_are_steps_where_the_examples_are_counted() -> None:
    made = content(seeds=[1])
    made["data"]["recall"]["num_train"] = 100
    made["phases"][0]["segments"] = [{"epochs": 3.0, "batch": 16}]
    assert predict(Study.of(made).design).seconds == seconds({"steps": 21, "batch": 16})


@pytest.mark.parametrize(
    ("study", "why"),
    [
        pytest.param(design({"epochs": 2.0, "batch": 16}), "how many examples 'recall' has", id="epochs"),
        pytest.param(text({"steps": 3, "batch": 8}, "word"), "how many tokens the tokenizer 'word' finds", id="words"),
        pytest.param(
            design({"steps": 3, "batch": 8}, {"checkpoint": "nobody/has-this"}), "how large 'nobody/has-this' is",
            id="checkpoint",
        ),
    ],
)  # fmt: skip
def test_what_is_not_known_is_said_and_not_guessed(study: Any, why: str) -> None:
    found = predict(study)
    assert (found.seconds, len(found.unknown)) == (None, 1)
    assert found.unknown[0].startswith(why)
    assert found.num_runs == len(study.arms)


def test_a_checkpoint_on_this_machine_is_counted_by_its_config(tmp_path: Path) -> None:
    BertConfig(**BERT, vocab_size=500).save_pretrained(tmp_path)
    study = design({"steps": 1, "batch": 8}, {"checkpoint": str(tmp_path)}, task="mlm", task_settings={})
    assert count(study) == count(text({"steps": 1, "batch": 8}, "wordpiece:500"))


def test_a_line_is_audited_once_whatever_arms_have_it() -> None:
    assert (
        predict_audit_seconds(read_design(list_recipes()["boolq-tuning"], "smoke")) < 2
    )  # one line, one size, six arms


def test_every_smoke_budget_has_a_time_without_data() -> None:
    for file in list_recipes().values():
        assert predict(read_design(file, "smoke")).seconds is not None


def test_the_speed_of_this_machine_is_measured() -> None:
    overhead, pace = measure_speed()
    assert overhead >= 0
    assert pace > 0
