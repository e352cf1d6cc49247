"""The model of a run comes back as its checkpoint has it."""

from pathlib import Path

import pytest
import torch

from attnlab.errors import TrainingError
from attnlab.training import Display, build, train
from attnlab.training.job.restore import restore

from ..runs import small


def test_a_restored_model_has_the_trained_weights(tmp_path: Path) -> None:
    job = build(small())
    train(job, tmp_path / "run", Display(is_quiet=True))
    restored = restore(tmp_path / "run")
    assert not restored.model.training
    assert restored.state.step == 6
    weights = job.model.state_dict()
    assert all(torch.equal(tensor, weights[name]) for name, tensor in restored.model.state_dict().items())


def test_another_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="is not the folder of a run"):
        restore(tmp_path)
