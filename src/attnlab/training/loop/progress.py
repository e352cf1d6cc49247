"""The progress of a run: a bar on a terminal and in a notebook, else a plain line every few seconds on stderr."""

import sys
import time
from typing import Any, Self, TextIO

from rich.progress import BarColumn, Progress, TextColumn

from attnlab.console import VisibleConsole
from attnlab.notebook import NotebookBar, in_notebook, is_terminal

SECONDS = 15.0
"""Time between plain lines."""
NOTEBOOK_SECONDS = 0.25
"""Time between updates of the bar in a notebook."""


class Display:
    """Shows a run's progress and messages. Tokens per second and remaining time are those of this process."""

    def __init__(self, stream: TextIO | None = None, *, is_quiet: bool = False) -> None:
        self.stream, self.is_quiet = stream or sys.stderr, is_quiet
        self.has_terminal = not is_quiet and is_terminal(self.stream)
        self.notebook = NotebookBar() if stream is None and not is_quiet and in_notebook() else None
        self.bar: Progress | None = None
        self.bar_task: Any = None
        self.first: tuple[float, int, int] | None = None
        self.shown_at = 0.0
        self.status = ""

    def __enter__(self) -> Self:
        if self.has_terminal:
            columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[status]}"))
            self.bar = Progress(*columns, console=VisibleConsole(self.stream), transient=True)
            self.bar_task = self.bar.add_task("training", status="")
            self.bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self.bar is not None:
            self.bar.stop()
            self.bar = None
        if self.notebook is not None:
            self.notebook.close(self.status)

    def say(self, message: str) -> None:
        """Print a message; in a notebook it is shown with the bar."""
        if self.notebook is not None:
            self.notebook.messages.append(message)
        elif self.bar is not None:
            self.bar.console.print(message, markup=False, highlight=False, soft_wrap=True)
        elif not self.is_quiet:
            print(message, file=self.stream, flush=True)

    def advance(self, step: int, num_steps: int, tokens: int, loss: float) -> float:
        """Show the progress; return the tokens per second since this process began."""
        now = time.perf_counter()
        if self.first is None:
            self.first = now, step, tokens
            return 0.0
        began, first_step, first_tokens = self.first
        elapsed = max(now - began, 1e-9)
        speed = (tokens - first_tokens) / elapsed
        left = (num_steps - step) * elapsed / max(1, step - first_step)
        figures = f"step {step:,}/{num_steps:,}  loss {loss:.4f}  {speed:,.0f} tokens/s"
        self.status = status = f"{figures}  {format_duration(left)} left" if step < num_steps else figures
        if self.bar is not None:
            self.bar.update(self.bar_task, completed=step, total=num_steps, status=status)
        elif self.notebook is not None:
            if now - self.shown_at > NOTEBOOK_SECONDS:
                self.shown_at = now
                self.notebook.update(step / num_steps, status)
        elif now - self.shown_at > SECONDS or step == num_steps:
            self.shown_at = now
            self.say(status)
        return speed


def format_duration(seconds: float) -> str:
    """Write a duration in seconds, minutes or hours."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
