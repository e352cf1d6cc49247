"""A checkpoint of another model or of other data is refused with the reason."""

from pathlib import Path

import pytest

from attnlab.errors import TrainingError
from attnlab.training import Display, build, train
from attnlab.training.loop.checkpointer import Checkpointer
from attnlab.training.loop.optimizer import make_optimizer

from ..runs import DATA, small


def test_a_checkpoint_resumes_only_with_its_own_data(tmp_path: Path) -> None:
    train(build(small()), tmp_path, Display(is_quiet=True))
    messages: list[str] = []
    for data, is_refused in ((DATA["clm"], False), (DATA["clm"].replace(num_train=20), True)):
        job = build(small(data=data))
        checkpointer = Checkpointer(job, tmp_path, messages.append)
        checkpoint = checkpointer.checkpoints.load_last()
        assert checkpoint is not None
        optimizer = make_optimizer(job.model, job.settings.optimizer)
        if is_refused:
            with pytest.raises(TrainingError, match="cannot resume from the checkpoint at step 6: the training data"):
                checkpointer.restore(checkpoint, optimizer, {})
        else:
            checkpointer.restore(checkpoint, optimizer, {"threads": -1})
    assert "resuming from step 6 of 6" in messages[0]
    assert "threads" in messages[1]
