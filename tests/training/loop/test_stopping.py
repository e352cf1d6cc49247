"""The first Ctrl-C or SIGTERM asks, the second ends; outside a run signals are the caller's own."""

import signal
import threading
from pathlib import Path

import pytest

from attnlab.training import build, train
from attnlab.training.loop.stopping import SIGNALS, stop_request
from tests.training.runs import quiet, small


@pytest.mark.parametrize("number", SIGNALS, ids=["SIGINT", "SIGTERM"])
def test_the_first_request_is_noted_and_the_second_ends(number: signal.Signals) -> None:
    before = {each: signal.getsignal(each) for each in SIGNALS}
    with stop_request() as stop:
        assert not stop
        signal.raise_signal(number)
        assert stop
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert {each: signal.getsignal(each) for each in SIGNALS} == before


def test_a_request_is_answered_at_once_where_it_was_announced(capsys: pytest.CaptureFixture[str]) -> None:
    with stop_request() as stop:
        with stop.announce("stopping: this is finished first"):
            stop.check()
            signal.raise_signal(signal.SIGINT)
            assert capsys.readouterr().err == "\nstopping: this is finished first\n"
        with pytest.raises(KeyboardInterrupt):
            stop.check()
    with stop_request() as stop:
        with stop.announce("before"):
            pass
        signal.raise_signal(signal.SIGINT)
        assert not capsys.readouterr().err


def test_a_run_in_another_thread_trains_without_listening(tmp_path: Path) -> None:
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(train(build(small()), tmp_path, quiet()).status))
    thread.start()
    thread.join()
    assert found == ["finished"]
