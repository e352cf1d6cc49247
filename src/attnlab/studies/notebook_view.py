"""The progress of a study that runs in a notebook: one bar and the latest messages, replaced at every refresh."""

import time
from pathlib import Path

from attnlab.errors import AttnlabError
from attnlab.notebook import NotebookBar

from .answers.progress import Progress

SECONDS = 1.0
"""Between refreshes."""


class NotebookView:
    """Shows a study that this process runs. It has no thread: the runner calls `tick`."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = folder
        self.bar = NotebookBar()
        self.progress: Progress | None = None
        self.shown_at = 0.0

    def say(self, message: str) -> None:
        """Add a message."""
        self.bar.messages.append(message)
        self.tick()

    def tick(self) -> None:
        """Refresh the display if the last one is old enough."""
        if time.monotonic() - self.shown_at < SECONDS:
            return
        self.shown_at = time.monotonic()
        share, headline = 0.0, "starting"
        try:
            self.progress = self.progress or Progress(self.folder)
            seen = self.progress.look()
            if seen.runs:
                share, headline = seen.share, seen.headline
        except (AttnlabError, OSError) as error:
            # A display error must not end a study of days.
            headline = f"the progress cannot be shown: {error}"
        self.bar.update(share, headline)

    def close(self) -> None:
        """Leave all messages in place of the bar."""
        self.bar.close()
