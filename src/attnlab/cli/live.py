"""The progress of a study while it runs: a display that refreshes in a terminal, else plain lines."""

import time
from typing import TextIO

from rich.console import Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from attnlab.console import VisibleConsole
from attnlab.errors import AttnlabError
from attnlab.notebook import is_terminal
from attnlab.studies.answers.leaderboard import SO_FAR
from attnlab.studies.answers.progress import Progress, RunProgress, Snapshot
from attnlab.training.loop.progress import format_duration

PICTURE_SECONDS, LINE_SECONDS = 1.0, 30.0
"""Seconds between refreshes, and between plain lines."""
WIDE = 120
"""The width of a terminal that shows a run in one line."""
BAR_WIDTH = 20


class ProgressView:
    """Shows a study that this process runs, unless it is quiet. It has no thread: the runner calls `tick`."""

    def __init__(self, folder: str, stream: TextIO, *, is_quiet: bool = False) -> None:
        self.folder, self.stream, self.is_quiet = folder, stream, is_quiet
        self.progress: Progress | None = None
        self.picture: Live | None = None
        self.is_broken = False
        self.shown_at = time.monotonic()

    def say(self, message: str) -> None:
        """Print a message above the display, without buffering."""
        if self.is_quiet:
            return
        if self.picture is not None:
            self.picture.console.print(message, markup=False, highlight=False, soft_wrap=True)
        else:
            print(message, file=self.stream, flush=True)

    def tick(self) -> None:
        """Show the progress if the last display is old enough."""
        every = PICTURE_SECONDS if is_terminal(self.stream) else LINE_SECONDS
        if self.is_quiet or self.is_broken or time.monotonic() - self.shown_at < every:
            return
        self.shown_at = time.monotonic()
        try:
            self.progress = self.progress or Progress(self.folder)
            self.show(self.progress.look())
        except (AttnlabError, OSError) as error:
            # A display error must not end a study of days.
            self.is_broken = True
            self.close()
            self.say(f"the progress can no longer be shown: {error}; the study continues")

    def show(self, seen: Snapshot) -> None:
        """Refresh the display, or print a line."""
        if not is_terminal(self.stream):
            self.say(write_line(seen))
            return
        if self.picture is None:
            self.picture = Live(console=VisibleConsole(self.stream), auto_refresh=False, transient=True)
            self.picture.start()
        self.picture.update(draw_picture(seen, self.picture.console.width), refresh=True)

    def close(self) -> None:
        """Remove the display before other output."""
        if self.picture is not None:
            self.picture.stop()
            self.picture = None


def _list_facts(run: RunProgress) -> list[str]:
    if run.loss is None:
        return ["starting", "", "", "", ""]
    total = "" if run.num_steps is None else f"/{run.num_steps:,}"
    evaluation = run.evaluation
    return [
        f"step {run.step:,}{total}",
        f"loss {run.loss:.4f}",
        "" if run.tokens_per_second is None else f"{run.tokens_per_second:,.0f} tokens/s",
        "" if run.seconds_left is None else f"{format_duration(run.seconds_left)} left",
        "" if evaluation is None else f"{evaluation.name} {evaluation.value:.4g} at step {evaluation.step:,}",
    ]


def write_line(seen: Snapshot) -> str:
    """Write the progress in one line."""
    runs = [f"{run.run.title}: {', '.join(filter(None, _list_facts(run)))}" for run in seen.going]
    return "; ".join([seen.headline, *runs])


def draw_picture(seen: Snapshot, width: int) -> RenderableType:
    """Draw the progress of a study, of every run that is going, and the leading arm."""
    parts: list[RenderableType] = [Text.assemble((seen.name, "bold"), f"  {seen.headline}")]
    if width >= WIDE:
        parts.append(_draw_runs(seen.going))
    else:
        for run in seen.going:
            parts.append(Text(run.run.title, no_wrap=True, overflow="ellipsis"))
            facts = "  ".join(filter(None, _list_facts(run)))
            parts.append(Padding(_make_grid([[_draw_bar(run), Text(facts)]]), (0, 0, 0, 2)))
    sentences = [leaderboard.sentence for leaderboard in seen.leaderboards]
    parts += [Text(sentence, style="cyan") for sentence in sentences]
    if sentences:
        parts.append(Text(SO_FAR, style="dim"))
    return Group(*parts)


def _draw_runs(going: list[RunProgress]) -> Table:
    return _make_grid([
        [
            Text(run.run.title, no_wrap=True, overflow="ellipsis"), _draw_bar(run),
            *(Text(fact, no_wrap=True) for fact in _list_facts(run)),
        ]
        for run in going
    ])  # fmt: skip


def _make_grid(cells: list[list[RenderableType]]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    for row in cells:
        table.add_row(*row)
    return table


def _draw_bar(run: RunProgress) -> ProgressBar:
    is_known = run.num_steps is not None and run.loss is not None
    return ProgressBar(total=run.num_steps or 1, completed=run.step if is_known else 0, width=BAR_WIDTH)
