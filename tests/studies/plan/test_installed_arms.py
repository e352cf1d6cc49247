"""The audit of an installed arm: a big model has few layers, and a model that cannot be built is reported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from attnlab.errors import TrainingError
from attnlab.studies.file.design import Arm, Size
from attnlab.studies.plan.installed_arms import InstalledArm, mark_key
from attnlab.studies.study import _audit_mechanism
from attnlab.tasks import load
from attnlab.training.loop.stopping import StopRequest


def test_a_big_model_is_audited_with_few_layers_and_that_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    config = {"n_layer": 5, "n_embd": 16, "n_head": 2, "n_positions": 32}
    one = InstalledArm(Arm(mechanism="dot | softmax"), "big", Size(architecture="gpt2", config=config), load("clm"))
    assert "layers" not in one.audit(True)[1][0]["sentence"]
    monkeypatch.setattr("attnlab.studies.plan.installed_arms.MANY", 100)
    passed, (subject, *_) = one.audit(True)
    assert passed
    assert "; 2 of its 5 layers" in subject["sentence"]


def test_a_line_by_layer_is_audited_with_all_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    config = {"n_layer": 5, "n_embd": 16, "n_head": 2, "n_positions": 32}
    arm = Arm(mechanism="dot | softmax | window(4) @ 0-3; baseline @ 4")
    monkeypatch.setattr("attnlab.studies.plan.installed_arms.MANY", 100)
    installed = InstalledArm(arm, "big", Size(architecture="gpt2", config=config), load("clm"))
    passed, (subject, *_) = installed.audit(True)
    assert passed
    assert "of its 5 layers" not in subject["sentence"]
    assert "dot | softmax | window(4) @ 0-3; dot | softmax @ 4" in subject["sentence"]


def test_the_key_depends_on_the_model_and_not_on_the_arms_name() -> None:
    arm, size = Arm(mechanism="dot | softmax"), Size(architecture="gpt2", config={"n_layer": 1})
    key = InstalledArm(arm, "tiny", size, load("clm")).key
    assert key.startswith("dot | softmax in tiny (")
    assert InstalledArm(arm.model_copy(), "tiny", size, load("clm")).key == key
    deeper = arm.model_copy(update={"set": {"config.n_layer": 2}})
    assert InstalledArm(deeper, "tiny", size, load("clm")).key != key
    assert InstalledArm(arm, "tiny", size, load("mlm")).key != key
    assert mark_key(key, "dot | softmax", ["not-read.py"]) == key


def test_a_model_that_cannot_be_built_is_an_error_of_training() -> None:
    odd = Size(architecture="gpt2", config={"n_layer": 1, "n_embd": 15, "n_head": 2})
    with pytest.raises(TrainingError, match="no model can be built from this config"):
        InstalledArm(Arm(mechanism="dot | softmax"), "odd", odd, load("clm")).audit(True)


def test_a_stop_comes_before_the_next_check(monkeypatch: pytest.MonkeyPatch) -> None:
    config = {"n_layer": 1, "n_embd": 16, "n_head": 2, "n_positions": 32}
    arm = InstalledArm(Arm(mechanism="dot | softmax"), "tiny", Size(architecture="gpt2", config=config), load("clm"))
    stop, begun = StopRequest(), list[str]()

    def audited(*_: Any, progress: Callable[[str], None], **__: Any) -> None:
        for name in ("first", "second"):
            progress(name)
            begun.append(name)
            stop.signal = 2

    monkeypatch.setattr("attnlab.studies.plan.installed_arms.audit", audited)
    monkeypatch.setattr("attnlab.studies.study.audit", audited)
    calls: list[Callable[[], object]] = [
        lambda: arm.audit(True, stop), lambda: _audit_mechanism("dot | softmax", True, stop)
    ]  # fmt: skip
    for audit_arm in calls:
        begun.clear()
        stop.signal = None
        with pytest.raises(KeyboardInterrupt):
            audit_arm()
        assert begun == ["first"]
