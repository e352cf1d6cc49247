"""What a person sees while a study runs: a picture in a terminal, plain lines elsewhere, and never a verdict."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from rich.console import Console

from attnlab.cli import live
from attnlab.cli.live import ProgressView, draw_picture, write_line
from attnlab.studies.answers.progress import Progress
from tests.studies.moments import Moment, evaluation, update, write


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def moment(tmp_path: Path) -> Iterator[Moment]:
    """Make a study with two runs that have ended, one that is going and one that starts."""
    found = Moment(tmp_path)
    found.hold()
    found.plan()
    found.end("dot", 1, 0.5)
    found.end("bypass", 1, 0.75)
    write(found.begin("dot", 2), update(10, 3.0, 1.0) + update(20, 2.0, 2.0) + evaluation(20, 0.25))
    found.begin("bypass", 2)
    yield found
    found.ledger.close()


def drawn(moment: Moment, width: int) -> list[str]:
    """Return the picture of a moment as lines of text."""
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    with console.capture() as shown:
        console.print(draw_picture(Progress(moment.folder).look(), width))
    return [line.rstrip() for line in shown.get().splitlines()]


@pytest.mark.parametrize("width", [60, 100, 200])
def test_the_picture_says_what_is_going_and_who_leads(moment: Moment, width: int) -> None:
    lines = drawn(moment, width)
    text = " ".join(" ".join(lines).split())
    assert "small 2 of 6 runs have ended, 2 going, about" in text
    for said in ("recall, tiny, dot, seed 2", "step 20/100", "loss 2.0000", "1,000 tokens/s", "8 s left", "starting"):
        assert said in text
    assert "accuracy 0.25 at step 20" in text
    assert "bypass leads; mean accuracy: bypass 0.75 (1 seed), dot 0.5 (1 seed)" in text
    assert lines[-1] == "so far; no verdict before the end"
    assert max(map(len, lines)) <= width


def test_a_terminal_gets_a_picture_and_messages_above_it(moment: Moment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "PICTURE_SECONDS", 0.0)
    stream = Terminal()
    with closing(ProgressView(str(moment.folder), stream)) as view:
        view.say("before")
        view.tick()
        view.say("1/6 [red]done[/red]")
        view.tick()
    shown = stream.getvalue()
    assert shown.startswith("before\n")
    assert "2 of 6 runs have ended" in shown
    assert "1/6 [red]done[/red]" in shown
    assert shown.endswith("\x1b[?25h") or "\x1b[?25h" in shown  # the cursor is back


def test_elsewhere_there_is_a_line_every_so_often(moment: Moment, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    with closing(ProgressView(str(moment.folder), stream)) as view:
        view.tick()
        assert stream.getvalue() == ""
        monkeypatch.setattr(live, "LINE_SECONDS", 0.0)
        view.tick()
    assert stream.getvalue().endswith(
        "recall, tiny, dot, seed 2: step 20/100, loss 2.0000, 1,000 tokens/s, 8 s left, accuracy 0.25 at step 20; "
        "recall, tiny, bypass, seed 2: starting\n"
    )
    assert stream.getvalue().count("\n") == 1


def test_nothing_is_shown_where_programs_read(moment: Moment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "PICTURE_SECONDS", 0.0)
    stream = Terminal()
    with closing(ProgressView(str(moment.folder), stream, is_quiet=True)) as view:
        view.say("a message")
        view.tick()
    assert stream.getvalue() == ""


def test_a_picture_that_cannot_be_drawn_does_not_end_the_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    monkeypatch.setattr(live, "LINE_SECONDS", 0.0)
    stream = io.StringIO()
    with closing(ProgressView(str(tmp_path / "nothing"), stream)) as view:
        view.tick()
        view.tick()
        view.say("1/6")
    first, second = stream.getvalue().splitlines()
    assert first.startswith("the progress can no longer be shown: ")
    assert first.endswith("; the study continues")
    assert second == "1/6"


def test_time_that_is_not_known_is_not_guessed(tmp_path: Path) -> None:
    moment = Moment(tmp_path)
    moment.hold()
    moment.plan()
    moment.begin("dot", 1)
    said = write_line(Progress(tmp_path).look())
    moment.ledger.close()
    assert said == "0 of 6 runs have ended, 1 going, time left not yet known; recall, tiny, dot, seed 1: starting"
