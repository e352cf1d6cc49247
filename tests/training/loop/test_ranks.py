"""The same run under torchrun: two processes give the loss of one, and checkpoints move between one and two."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from attnlab.errors import TrainingError
from attnlab.training import build, train
from attnlab.training.loop.ranks import join_ranks
from tests.training.sharing import RUN, Stopper

ROOT = Path(__file__).parents[3]
TOGETHER = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m",
            "tests.training.sharing"]  # fmt: skip
ROUNDING = 2e-5
"""Sums over two processes are taken in another order; twelve steps of AdamW carry that on."""


def run_alone(folder: Path, stop: int = -1) -> None:
    train(build(RUN.replace()), folder, Stopper(stop))


def run_together(folder: Path, stop: int) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [*TOGETHER, str(folder), str(stop)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def losses(folder: Path) -> list[float]:
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    trained = [line for line in lines if line["kind"] == "train"]
    assert [line["step"] for line in trained] == list(range(1, 13))
    return [line["loss"] for line in trained]


def weights(folder: Path) -> Any:
    return load_file(folder / "checkpoints" / "step-00000012" / "model.safetensors")


def figures(folder: Path) -> Any:
    return json.loads((folder / "result.json").read_text(encoding="utf-8"))["last"]["figures"]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("alone")
    run_alone(folder)
    return folder


def check_like(folder: Path, alone: Path) -> None:
    assert losses(folder) == pytest.approx(losses(alone), rel=ROUNDING)
    for name, tensor in weights(alone).items():
        assert (weights(folder)[name] - tensor).abs().max() < 1e-3
    figures = [
        json.loads((one / "result.json").read_text(encoding="utf-8"))["last"]["figures"] for one in (folder, alone)
    ]
    assert figures[0] == pytest.approx(figures[1], rel=1e-3)


def test_a_run_goes_on_from_one_process_in_two_and_from_two_in_one(alone: Path, tmp_path: Path) -> None:
    run_alone(tmp_path, stop=1)
    run_together(tmp_path, stop=5)
    assert not (tmp_path / "result.json").exists()
    run_alone(tmp_path)
    check_like(tmp_path, alone)


@pytest.mark.parametrize("variables", [
    {"WORLD_SIZE": "2"}, {"WORLD_SIZE": "x"}, {"WORLD_SIZE": "-1"}, {"WORLD_SIZE": "2", "RANK": "0"},
    {"WORLD_SIZE": "2", "RANK": "y", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"},
])  # fmt: skip
def test_variables_that_torchrun_did_not_set_are_one_sentence(
    variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("WORLD_SIZE", "RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(TrainingError, match=r"WORLD_SIZE|RANK"), join_ranks():
        pass
