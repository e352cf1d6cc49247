"""What a person sees while a study runs: a picture that renews itself in a terminal, and elsewhere plain lines."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from attnlab.errors import AttnlabError
from attnlab.studies.answers.leaderboard import SO_FAR
from attnlab.studies.answers.progress import Progress, RunProgress, Snapshot
from attnlab.training.loop.progress import format_duration

PICTURE_SECONDS, LINE_SECONDS = 1.0, 30.0
"""Between pictures, and between plain lines."""
WIDE = 120
"""Characters of a terminal that holds a run in one line."""
BAR_WIDTH = 20


class ProgressView:
    """Shows a study that this process runs, unless programs read. It has no thread: who runs the study calls `tick`."""

    def __init__(self, folder: str, stream: TextIO, *, is_quiet: bool = False) -> None:
        self.folder, self.stream, self.is_quiet = folder, stream, is_quiet
        self.progress: Progress | None = None
        self.picture: Live | None = None
        self.is_broken = False
        self.shown_at = time.monotonic()

    def __enter__(self) -> ProgressView:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def say(self, message: str) -> None:
        """Print a message above the picture, at once, also where a pipe would keep it back."""
        if self.is_quiet:
            return
        if self.picture is not None:
            self.picture.console.print(message, markup=False, highlight=False, soft_wrap=True)
        else:
            print(message, file=self.stream, flush=True)

    def tick(self) -> None:
        """Show how things stand, where it is time to."""
        every = PICTURE_SECONDS if self.stream.isatty() else LINE_SECONDS
        if self.is_quiet or self.is_broken or time.monotonic() - self.shown_at < every:
            return
        self.shown_at = time.monotonic()
        try:
            self.progress = self.progress or Progress(self.folder)
            self.show(self.progress.look())
        except (AttnlabError, OSError) as error:
            # A study of days must not end for want of a picture.
            self.is_broken = True
            self.close()
            self.say(f"its progress cannot be shown any more: {error}; the study goes on")

    def show(self, seen: Snapshot) -> None:
        """Renew the picture, or print a line."""
        if not self.stream.isatty():
            self.say(write_line(seen))
            return
        if self.picture is None:
            self.picture = Live(console=Console(file=self.stream), auto_refresh=False, transient=True)
            self.picture.start()
        self.picture.update(draw_picture(seen, self.picture.console.width), refresh=True)

    def close(self) -> None:
        """Take the picture away, so that what is printed next stands alone."""
        if self.picture is not None:
            self.picture.stop()
            self.picture = None


def _write_headline(seen: Snapshot) -> str:
    """Say how far the whole study is."""
    said = f"{seen.num_ended} of {len(seen.runs)} runs have ended, {len(seen.going)} going"
    said += f", {seen.num_given_up} given up" if seen.num_given_up else ""
    return f"{said}, {'time left not yet known' if seen.seconds_left is None else _format_time_left(seen.seconds_left)}"


def _format_time_left(seconds: float) -> str:
    """Say how much time is left."""
    return f"about {format_duration(seconds)} left"


def _list_facts(one: RunProgress) -> list[str]:
    """Say how far a run is, part by part; empty where it has not said so yet."""
    if one.loss is None:
        return ["starting", "", "", "", ""]
    of_all = "" if one.num_steps is None else f"/{one.num_steps:,}"
    evaluation = one.evaluation
    return [
        f"step {one.step:,}{of_all}",
        f"loss {one.loss:.4f}",
        "" if one.tokens_per_second is None else f"{one.tokens_per_second:,.0f} tokens/s",
        "" if one.seconds_left is None else f"{format_duration(one.seconds_left)} left",
        "" if evaluation is None else f"{evaluation.name} {evaluation.value:.4g} at step {evaluation.step:,}",
    ]


def write_line(seen: Snapshot) -> str:
    """Say in one line what is going."""
    runs = [f"{one.run.title}: {', '.join(fact for fact in _list_facts(one) if fact)}" for one in seen.going]
    return "; ".join([_write_headline(seen), *runs])


def draw_picture(seen: Snapshot, width: int) -> RenderableType:
    """Draw a study: how far it is, every run that is going, and which arm leads."""
    parts: list[RenderableType] = [Text.assemble((seen.name, "bold"), f"  {_write_headline(seen)}")]
    if width >= WIDE:
        parts.append(_draw_runs(seen.going))
    else:
        for one in seen.going:
            parts.append(Text(one.run.title, no_wrap=True, overflow="ellipsis"))
            facts = "  ".join(fact for fact in _list_facts(one) if fact)
            parts.append(Padding(_make_grid([[_draw_bar(one), Text(facts)]]), (0, 0, 0, 2)))
    sentences = [leaderboard.sentence for leaderboard in seen.leaderboards]
    parts += [Text(sentence, style="cyan") for sentence in sentences]
    if sentences:
        parts.append(Text(SO_FAR, style="dim"))
    return Group(*parts)


def _draw_runs(going: list[RunProgress]) -> Table:
    """Draw the runs that are going, each in one line."""
    return _make_grid([
        [
            Text(one.run.title, no_wrap=True, overflow="ellipsis"), _draw_bar(one),
            *(Text(fact, no_wrap=True) for fact in _list_facts(one)),
        ]
        for one in going
    ])  # fmt: skip


def _make_grid(cells: list[list[RenderableType]]) -> Table:
    """Lay out rows without lines between them."""
    table = Table.grid(padding=(0, 2, 0, 0))
    for row in cells:
        table.add_row(*row)
    return table


def _draw_bar(one: RunProgress) -> ProgressBar:
    """Draw how much of a run is done; a bar that only moves where that is not known."""
    is_known = one.num_steps is not None and one.loss is not None
    return ProgressBar(total=one.num_steps or 1, completed=one.step if is_known else 0, width=BAR_WIDTH)
