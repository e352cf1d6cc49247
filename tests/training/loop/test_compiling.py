"""torch.compile is given the layers around attention, each, and says what it costs."""

from pathlib import Path
from typing import Any

import pytest
from torch import nn

from attnlab.errors import TrainingError
from attnlab.training import build, train
from attnlab.training.loop.compiling import compile_layers
from tests.training.runs import Listening, losses_of, quiet, small


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note what is compiled, and leave it as it is: a compiler takes a minute."""
    found: list[str] = []

    def note(module: nn.Module, **settings: Any) -> None:
        assert settings == {"dynamic": True}
        found.append(type(module).__name__)

    monkeypatch.setattr(nn.Module, "compile", note)
    return found


@pytest.mark.parametrize(("task", "layer"), [("clm", "GPT2Block"), ("mlm", "BertLayer")], ids=["gpt2", "bert"])
def test_every_layer_is_compiled(task: str, layer: str, compiled: list[str]) -> None:
    said = compile_layers(build(small(task)).model)
    assert compiled == [layer, layer]
    assert said.startswith("torch.compile: 2 layers are compiled in the first steps, which takes a minute or more")


def test_only_a_run_that_asks_for_it_is_compiled(compiled: list[str], tmp_path: Path) -> None:
    display = Listening()
    train(build(small(is_compiled=True)), tmp_path / "fast", display)
    assert len(compiled) == 2
    assert any(said.startswith("torch.compile") for said in display.said)
    train(build(small()), tmp_path / "plain", quiet())
    assert len(compiled) == 2
    assert losses_of(tmp_path / "fast") == losses_of(tmp_path / "plain")


def test_a_model_without_layers_is_refused() -> None:
    with pytest.raises(TrainingError, match="Linear has no list of layers"):
        compile_layers(nn.Linear(2, 2))
