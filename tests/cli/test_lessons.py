"""The demo trains what it says, catches what reads the future, and leaves nothing behind."""

import dataclasses
import tempfile
from pathlib import Path

import pytest
import torch

from attnlab import training
from attnlab.cli.lessons import Course, Lesson, teach
from attnlab.errors import TrainingError
from attnlab.training import Divergence, Result

from .test_demo import SHORT


@pytest.fixture(scope="module")
def taught() -> dict[str, Lesson]:
    return {name: teach(name, SHORT) for name in SHORT.arms}


def test_losses_are_those_of_every_so_many_steps(taught: dict[str, Lesson]) -> None:
    for name, lesson in taught.items():
        assert [point.step for point in lesson.training] == [2, 4, 6]
        assert [point.step for point in lesson.dev] == [3, 6]
        assert {point.arm for point in (*lesson.training, *lesson.dev)} == {name}
        assert lesson.train_loss < lesson.training[0].value


def test_only_the_specimen_is_caught(taught: dict[str, Lesson]) -> None:
    sound, leaking = taught["baseline"], taught["leaking-mask"]
    assert sound.honest_perplexity == pytest.approx(sound.perplexity, rel=1e-5)
    assert sound.note.startswith("sound")
    assert not leaking.is_honest
    assert leaking.note.startswith("caught")
    assert sound.holds
    assert leaking.holds
    assert not dataclasses.replace(leaking, honest_perplexity=leaking.perplexity).holds
    assert not dataclasses.replace(sound, honest_perplexity=2 * sound.perplexity).holds
    assert not dataclasses.replace(sound, training=sound.training[::-1]).holds


def test_a_sample_goes_on_with_the_prompt(taught: dict[str, Lesson]) -> None:
    for lesson in taught.values():
        assert lesson.sample.startswith(SHORT.prompt)
        assert lesson.sample != SHORT.prompt


def test_arms_start_from_the_same_weights_and_batches(taught: dict[str, Lesson]) -> None:
    assert taught["baseline"].num_parameters == taught["leaking-mask"].num_parameters
    assert taught["baseline"].result.tokens == taught["leaking-mask"].result.tokens


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        teach("baseline", SHORT)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert not list(tmp_path.iterdir())


def test_ctrl_c_ends_the_demo_and_a_run_that_diverges_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "train", lambda *_: Result("interrupted", 1, 6))
    with pytest.raises(KeyboardInterrupt):
        teach("baseline", SHORT)
    found = Divergence(1, "the loss is no number", 0.0, 0.0, 0.0, "train", 0, [], {})
    monkeypatch.setattr(training, "train", lambda *_: Result("diverged", 1, 6, divergence=found))
    with pytest.raises(TrainingError, match=r"'baseline'.*the loss is no number"):
        teach("baseline", SHORT)


def test_what_is_trained_is_said() -> None:
    sentence = Course().sentence
    for words in ("2 layers", "1,500 word pieces", "embedded:pydoc", "seed 0", "one thread"):
        assert words in sentence
