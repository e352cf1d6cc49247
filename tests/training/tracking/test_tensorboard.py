"""What TensorBoard is given."""

import dataclasses
from typing import Any

import pytest

from attnlab.training.tracking.tensorboard import TensorBoard
from tests.training.tracking.fakes import RUN, provide


def test_figures_are_written_at_once_and_the_config_with_a_new_run(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []

    class SummaryWriter:
        def __init__(self, folder: str) -> None:
            calls.append(("open", folder))

        def __getattr__(self, name: str) -> Any:
            return lambda *given: calls.append((name, *given))

    provide(monkeypatch, "torch.utils.tensorboard", SummaryWriter=SummaryWriter)
    board = TensorBoard()
    board.start(RUN)
    board.log(3, {"train/loss": 0.5})
    board.finish()
    assert [call[0] for call in calls] == ["open", "add_text", "add_scalar", "flush", "close"]
    assert calls[0] == ("open", str(RUN.folder))
    assert '"seed": 1' in calls[1][2]
    assert calls[2] == ("add_scalar", "train/loss", 0.5, 3)
    calls.clear()
    TensorBoard().start(dataclasses.replace(RUN, step=4))
    assert calls == [("open", str(RUN.folder))]
