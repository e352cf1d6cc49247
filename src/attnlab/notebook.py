"""How results show themselves: one line in a console, a small table in a notebook, and a progress bar there."""

import base64
import html
import importlib
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from attnlab.visible import make_visible

GREY, GREEN, ORANGE = "#888888", "#009E73", "#D55E00"
"""Colours that are readable on white and on black."""
RULE = "border-bottom:1px solid rgba(128,128,128,.35)"
CELL = f"text-align:left;vertical-align:top;padding:2px 14px 2px 0;{RULE}"
MAX_ROWS = 40
MAX_MESSAGES = 8
"""The messages below a progress bar; all of them remain at its end."""


@dataclass(frozen=True)
class Facts:
    """What an object shows of itself: a title, a sentence, and rows of a table. All of it is plain text.

    is_good: the colour of the line beside it, green, orange or grey. strong: the numbers of the rows in bold.
    """

    title: str
    sentence: str = ""
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[object]] = ()
    is_good: bool | None = None
    strong: Sequence[int] = ()


class Showable:
    """An object that shows its facts instead of all its fields. A dataclass derives from it with `repr=False`."""

    def facts(self) -> Facts:
        """Return what is shown."""
        raise NotImplementedError

    def picture(self) -> str:
        """Return an SVG to show below the facts in a notebook, or an empty string."""
        return ""

    def __repr__(self) -> str:
        facts = self.facts()
        return make_visible(f"<{type(self).__name__} {'; '.join(filter(None, (facts.title, facts.sentence)))}>")

    def _repr_html_(self) -> str:
        return write_html(self.facts(), self.picture())


def write_html(facts: Facts, picture: str = "") -> str:
    """Write facts as HTML that takes the colours of the page around it. Every text is escaped and made visible.

    The picture is an image, not an element, so that its ids and styles cannot meet those of another one.
    """
    colour = {None: GREY, True: GREEN, False: ORANGE}[facts.is_good]
    parts = [f'<div style="border-left:3px solid {colour};padding-left:12px;margin:4px 0">']
    if facts.title:
        parts.append(f"<div><b>{_escape(facts.title)}</b></div>")
    if facts.sentence:
        parts.append(f'<div style="max-width:62em">{_escape(facts.sentence)}</div>')
    if facts.rows:
        parts.append(_write_table(facts))
    if picture:
        source = base64.b64encode(picture.encode()).decode()
        style = "max-width:100%;margin-top:8px;background:white"
        parts.append(f'<div><img style="{style}" alt="" src="data:image/svg+xml;base64,{source}"></div>')
    return "".join([*parts, "</div>"])


def _write_table(facts: Facts) -> str:
    rows = []
    if facts.columns:
        rows.append("".join(f'<th style="{CELL}">{_escape(name)}</th>' for name in facts.columns))
    for number, row in enumerate(facts.rows[:MAX_ROWS]):
        style = f"{CELL};font-weight:bold" if number in facts.strong else CELL
        rows.append("".join(f'<td style="{style}">{_escape(str(cell))}</td>' for cell in row))
    if len(facts.rows) > MAX_ROWS:
        rows.append(f'<td style="{CELL}">… and {len(facts.rows) - MAX_ROWS} more</td>')
    return f'<table style="border-collapse:collapse;margin:6px 0"><tr>{"</tr><tr>".join(rows)}</tr></table>'


def _escape(text: str) -> str:
    return html.escape(make_visible(text))


def in_notebook() -> bool:
    """Tell whether this process is the kernel of a notebook, which can replace what it has displayed."""
    # A kernel has imported IPython; nobody else pays for importing it.
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


def is_terminal(stream: TextIO) -> bool:
    """Tell whether a stream is a terminal whose lines can be written again.

    `!command` in a notebook runs in a terminal that cannot: there every refresh would be another line. Jupyter marks
    the processes that its kernels start with JPY_PARENT_PID.
    """
    return stream.isatty() and "JPY_PARENT_PID" not in os.environ


class NotebookBar:
    """A progress bar with messages in the output of a cell: one display, replaced at every update."""

    def __init__(self) -> None:
        self.handle: Any = None
        self.messages: list[str] = []

    def update(self, share: float, text: str) -> None:
        """Show the share that is done, from 0 to 1, a text beside it, and the latest messages below."""
        bar = f'<progress style="width:16em;vertical-align:middle" value="{share:.4f}" max="1"></progress> '
        self._show(bar, [text, *self.messages[-MAX_MESSAGES:]])

    def close(self, text: str = "") -> None:
        """Replace the bar by all messages and a last text."""
        if lines := [*self.messages, *([text] if text else [])]:
            self._show("", lines)
        self.handle = None

    def _show(self, bar: str, lines: Sequence[str]) -> None:
        notebook = importlib.import_module("IPython.display")  # only a kernel needs it to be installed
        content = notebook.HTML(f'<div style="white-space:pre-wrap">{bar}{_escape(chr(10).join(lines))}</div>')
        if self.handle is None:
            self.handle = notebook.display(content, display_id=True)
        else:
            self.handle.update(content)
