"""What a person sees: plain lines every so often, or a bar where there is a terminal."""

import io
from pathlib import Path

import pytest

from attnlab.training import Display, build, train
from attnlab.training.loop.progress import format_duration
from tests.conftest import NotebookKernel
from tests.training.runs import small


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_plain_lines_come_first_at_the_end_and_now_and_then() -> None:
    stream = io.StringIO()
    with Display(stream) as display:
        for step in range(1, 101):
            display.advance(step, 100, step * 1000, 2.5)
    lines = stream.getvalue().splitlines()
    assert len(lines) < 5
    assert lines[-1].startswith("step 100/100  loss 2.5000  ")
    assert lines[-1].endswith(" tokens/s")


def test_speed_is_that_of_this_process() -> None:
    display = Display(is_quiet=True)
    assert display.advance(501, 1000, 10**9, 1.0) == 0.0
    assert 0 < display.advance(502, 1000, 10**9 + 64, 1.0) <= 64 / 1e-9


def test_a_quiet_display_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with Display(is_quiet=True) as display:
        display.say("hello")
        display.advance(1, 1, 1, 1.0)
        display.advance(1, 1, 1, 1.0)
    assert capsys.readouterr() == ("", "")


def test_a_terminal_gets_a_bar_and_keeps_messages(tmp_path: Path) -> None:
    terminal = Terminal()
    display = Display(terminal)
    result = train(build(small()), tmp_path, display)
    shown = terminal.getvalue()
    assert "training" in shown
    assert f"{tmp_path}" not in shown
    assert result.sentence in shown
    assert "[/" not in shown
    assert display.bar is None
    assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h") == 1


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (89.4, "89 s"), (90, "2 min"), (3600, "60 min"), (5400, "1.5 h"), (360000, "100.0 h")],
    ids=str,
)
def test_time_left_is_said_as_people_do(seconds: float, words: str) -> None:
    assert format_duration(seconds) == words


def test_in_a_notebook_there_is_one_bar_and_no_line(
    notebook_kernel: NotebookKernel, capsys: pytest.CaptureFixture[str]
) -> None:
    with Display() as display:
        for step in range(1, 101):
            display.advance(step, 100, step * 1000, 2.5)
        display.say("the end")
    assert len(notebook_kernel.displays) == 1
    assert "the end\nstep 100/100  loss 2.5000" in notebook_kernel.displays[0]
    assert capsys.readouterr() == ("", "")
