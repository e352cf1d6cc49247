"""`attnlab.load` reads the folder of a run, its best checkpoint, and what `attnlab.save` wrote."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

import attnlab
from attnlab.errors import AttnlabError
from tests.training.runs import last_of, small, trained

LINE = "cosine | softmax | bypass(alpha=0.5, learn=true)"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study") / "runs" / "1a2b"
    trained(small(mechanism=LINE, evaluate_every=3), folder)
    return folder


def test_a_run_is_loaded_with_its_mechanism_and_weights(run: Path, tmp_path: Path) -> None:
    model: Any = attnlab.load(run, LINE)
    assert str(attnlab.mechanism_of(model)) == LINE
    assert not model.training
    weights = last_of(run).model
    assert all(torch.equal(weights[name], tensor) for name, tensor in model.state_dict().items() if name in weights)
    ids = torch.arange(8)[None]
    assert torch.equal(attnlab.load(f"{run}:best")(ids).logits, model(ids).logits)  # the last step was the best
    attnlab.save(model, tmp_path / "saved")
    assert torch.equal(attnlab.load(tmp_path / "saved")(ids).logits, model(ids).logits)


def test_what_is_not_one_run_is_refused(run: Path, tmp_path: Path) -> None:
    study = run.parents[1]
    for path, options, said in (
        (study, {}, f"{study} holds a study; load one of its 1 runs, such as attnlab.load('{run}')"),
        (run, {"mechanism": "dot | softmax"}, f"'{run}' holds '{LINE}', not 'dot | softmax'"),
        (tmp_path, {}, "has no config.json"),
        (3, {}, "the path of a directory is needed, not 3"),
    ):
        load: Any = attnlab.load
        with pytest.raises(AttnlabError) as raised:
            load(path, **options)
        assert said in str(raised.value)
    empty = tmp_path / "begun"
    shutil.copytree(run, empty)
    shutil.rmtree(empty / "checkpoints")
    (empty / "checkpoints").mkdir()
    with pytest.raises(AttnlabError, match="no checkpoint"):
        attnlab.load(empty)
