"""Where a model's weights come from: an architecture, transformers, attnlab.save, or another run."""

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

import attnlab
from attnlab.errors import InstallError, TrainingError
from attnlab.tasks import load
from attnlab.training import Optimizer, Segment, Start, Tuning, build, train
from attnlab.training.job.weights import build_model
from tests.tasks.models import SIZES
from tests.tasks.tokenizers import wordpiece
from tests.training.runs import Listening, Stopping, checkpoints_of, last_of, quiet, small, trained

LINE = "cosine(scale=learned) | softmax"


def started(path: Path | str, task: str = "squad", *, seed: int = 0, say: Any = str, **start: Any) -> Any:
    """Build a model from a checkpoint."""
    return build_model(Start(checkpoint=str(path), **start), load(task), wordpiece(), seed, say)


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Save a classifier of three classes as transformers does."""
    folder = tmp_path_factory.mktemp("pretrained")
    config = transformers.AutoConfig.for_model("bert", vocab_size=len(wordpiece()), num_labels=3, **SIZES["bert"])
    head: Any = transformers.AutoModelForSequenceClassification
    head.from_config(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train a masked language model whose best checkpoint is not its last."""
    folder = tmp_path_factory.mktemp("run")
    changes: dict[str, Any] = {
        "segments": (Segment(steps=8, batch=4),), "optimizer": Optimizer(lr=0.5), "mechanism": LINE,
        "evaluate_every": 1,
    }  # fmt: skip
    _, result = trained(small("mlm", **changes), folder)
    assert result.best.step != result.last.step
    return folder


def body_of(model: Any) -> dict[str, torch.Tensor]:
    """Return the weights of a model below its head, without a pooler, which not every head has."""
    return {name: t for name, t in model.state_dict().items() if name.startswith("bert.") and "pooler" not in name}


def test_loaded_weights_stay_and_missing_ones_come_from_the_seed(pretrained: Path) -> None:
    theirs = transformers.AutoModel.from_pretrained(pretrained).state_dict()
    display = Listening()
    one, again, other = (started(pretrained, seed=seed, say=display.say) for seed in (0, 0, 1))
    for name, tensor in body_of(one).items():
        assert torch.equal(tensor, theirs[name.removeprefix("bert.")]), name
    assert torch.equal(one.qa_outputs.weight, again.qa_outputs.weight)
    assert not torch.equal(one.qa_outputs.weight, other.qa_outputs.weight)
    assert "qa_outputs.weight" in display.said[0]
    assert str(pretrained) in display.said[0]


def test_a_head_of_another_size_starts_anew(pretrained: Path) -> None:
    display = Listening()
    model = started(pretrained, "boolq", say=display.say)
    assert model.classifier.weight.shape == (2, 16)
    assert float(model.classifier.weight.detach().std()) == pytest.approx(0.02, rel=0.5)
    assert "classifier.weight" in display.said[0]


def test_a_checkpoint_keeps_the_sizes_it_has(pretrained: Path) -> None:
    with pytest.raises(TrainingError, match=r"is \[16\] in .* and \[32\] in a model of this config"):
        started(pretrained, config={"hidden_size": 32})
    with pytest.raises(TrainingError, match="the config of 'bert' has no setting 'hidden_siz', did you mean 'hidden_s"):
        started(pretrained, config={"hidden_siz": 32})
    model = started(pretrained, config={"hidden_dropout_prob": 0.4})
    assert model.config.hidden_dropout_prob == 0.4
    assert model.bert.encoder.layer[0].output.dropout.p == 0.4


@pytest.mark.parametrize("path", ["nowhere/at/all", "nowhere:best", "."], ids=["path", "best", "a folder"])
def test_what_is_no_checkpoint_is_said(path: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(TrainingError, match=f"no model can be loaded from '{path}'"):
        started(path)


def test_what_attnlab_saved_gives_its_body_and_a_head_of_its_kind(tmp_path: Path) -> None:
    start = Start(architecture="bert", config=SIZES["bert"], mechanism=LINE)
    donor = build_model(start, load("mlm"), wordpiece(), 5, str)
    attnlab.save(donor, tmp_path)
    same, other = (started(tmp_path, task, mechanism=LINE) for task in ("mlm", "squad"))
    assert all(torch.equal(tensor, donor.state_dict()[name]) for name, tensor in same.state_dict().items())
    assert any("attnlab" in name for name in body_of(other))
    assert all(torch.equal(tensor, donor.state_dict()[name]) for name, tensor in body_of(other).items())
    with pytest.raises(InstallError, match=r"holds 'cosine\(scale=learned\) \| softmax', not 'dot \| softmax'"):
        started(tmp_path)


@pytest.mark.parametrize("which", ["", ":last", ":best"])
def test_another_head_starts_from_a_run(which: str, run: Path) -> None:
    model = started(f"{run}{which}", mechanism=LINE)
    newest = last_of(run)
    step = newest.state["run"]["best"]["step"] if which == ":best" else newest.step
    kept = checkpoints_of(run).load(step).model
    for name, tensor in body_of(model).items():
        assert torch.equal(tensor, kept[name]), name
    assert float(model.qa_outputs.weight.detach().std()) == pytest.approx(0.02, rel=0.5)


def test_a_run_goes_on_to_another_task(run: Path, tmp_path: Path) -> None:
    squad = small("squad", start=Start(checkpoint=f"{run}:best", mechanism=LINE))
    whole = build(squad)
    train(whole, tmp_path / "whole", quiet())
    train(build(squad), tmp_path / "parts", Stopping([3]))
    train(build(squad), tmp_path / "parts", quiet())
    one, other = last_of(tmp_path / "whole").model, last_of(tmp_path / "parts").model
    assert all(torch.equal(tensor, other[name]) for name, tensor in one.items())


def test_what_does_not_fit_a_run_is_refused(run: Path, tmp_path: Path) -> None:
    with pytest.raises(
        TrainingError, match=r"was trained with 'cosine\(scale=learned\) \| softmax', not 'dot \| softmax'"
    ):
        started(run)
    with pytest.raises(
        TrainingError, match=r"the checkpoint has no 'bert\.\S+' of the same shape; it is of another body"
    ):
        started(run, mechanism=LINE, config={"num_hidden_layers": 3})
    with pytest.raises(TrainingError, match="has no setting 'foo'"):
        started(run, mechanism=LINE, config={"foo": 3})
    train(build(small("squad", tuning=Tuning(mode="head"))), tmp_path / "head", quiet())
    with pytest.raises(TrainingError, match="trained only a 'head'; start from the model that it started from"):
        started(tmp_path / "head")
    train(build(small(checkpoint_every=2)), tmp_path / "new", Stopping([3]))
    with pytest.raises(TrainingError, match="was never evaluated, so it has no best checkpoint"):
        started(f"{tmp_path / 'new'}:best")


@pytest.mark.parametrize(
    ("kind", "config", "said"),
    [
        ("gtp2", {}, "transformers has no architecture 'gtp2', did you mean 'gpt2'"),
        ("gpt2", {"n_layers": 3}, "the config of 'gpt2' has no setting 'n_layers', did you mean 'n_layer'"),
        ("gpt2", {"n_layer": "abc"}, "no model can be built from this config .*n_layer"),
        ("gpt2", {"n_embd": 15, "n_head": 2}, "no model can be built from this config .*divisible"),
        ("gpt2", {"activation_function": "foo"}, "no model can be built from this config .*foo"),
        ("t5", {}, "no model can be built from this config .*AutoModelForCausalLM"),
    ],
    ids=["architecture", "unknown", "text", "heads", "activation", "head"],
)
def test_a_config_that_makes_no_model_is_one_sentence(kind: str, config: dict[str, Any], said: str) -> None:
    with pytest.raises(TrainingError, match=said) as caught:
        build_model(Start(architecture=kind, config=config), load("clm"), wordpiece(), 0, str)
    assert "\n" not in str(caught.value)
