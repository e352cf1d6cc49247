"""The console of progress displays: rich draws with control characters, and the text it is given is made visible."""

from collections.abc import Iterable
from typing import TextIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from attnlab.visible import get_unfiltered_stream, make_visible


class VisibleConsole(Console):
    """A rich console on a stream; control characters in names and messages are shown as escapes."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(file=get_unfiltered_stream(stream))

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of what is shown."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(make_visible(segment.text), segment.style)
