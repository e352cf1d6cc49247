"""The model of a run comes back as its checkpoint has it."""

from pathlib import Path

import pytest
import torch

from attnlab.errors import MechanismError, TrainingError
from attnlab.training import Display, Start, build, train
from attnlab.training.job.loading import load
from attnlab.training.job.restore import restore
from attnlab.training.record.files import read_json, write_json
from attnlab.training.record.folder import CONFIG

from ..runs import small, trained


def test_a_restored_model_has_the_trained_weights(tmp_path: Path) -> None:
    job = build(small())
    train(job, tmp_path / "run", Display(is_quiet=True))
    restored = restore(tmp_path / "run")
    assert not restored.model.training
    assert restored.state.step == 6
    weights = job.model.state_dict()
    assert all(torch.equal(tensor, weights[name]) for name, tensor in restored.model.state_dict().items())


@pytest.mark.usefixtures("mixers")
@pytest.mark.parametrize("line", ["mixer(stepping)", "mixer(average) @ 0; dot | softmax @ 1"])
def test_a_run_with_a_mixer_is_restored_loaded_and_started_from(tmp_path: Path, line: str) -> None:
    job, _ = trained(small(mechanism=line), tmp_path / "run")
    weights = job.model.state_dict()
    assert any("c_attn" in name for name in weights)
    for model in (restore(tmp_path / "run").model, load(tmp_path / "run:best")):
        assert all(torch.equal(tensor, weights[name]) for name, tensor in model.state_dict().items())
    # What the mixer replaced is not what a seed would give, and must survive a second run.
    again, _ = trained(small(start=Start(checkpoint=str(tmp_path / "run"), mechanism=line), seed=9), tmp_path / "next")
    kept = restore(tmp_path / "next").model.state_dict()
    assert all(torch.equal(tensor, kept[name]) for name, tensor in again.model.state_dict().items())
    replaced = [name for name in weights if "h.0.attn.c_" in name]
    assert replaced
    assert all(torch.equal(kept[name], weights[name]) for name in replaced)


def test_a_run_with_an_unknown_stage_says_how_to_define_it(tmp_path: Path) -> None:
    trained(small(), tmp_path)
    content = read_json(tmp_path / CONFIG)
    content["start"]["mechanism"] = "dot | nobody_registered_this"
    write_json(tmp_path / CONFIG, content)
    with pytest.raises(MechanismError, match=r"(?s)import the file that defines them first .*--plugin FILE"):
        load(tmp_path)


def test_another_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="is not the folder of a run"):
        restore(tmp_path)
