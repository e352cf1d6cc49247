"""The console of progress displays."""

from __future__ import annotations

import io

from rich.table import Table
from rich.text import Text

from attnlab.console import VisibleConsole


def test_text_is_made_visible_and_drawing_is_not() -> None:
    stream = io.StringIO()
    console = VisibleConsole(stream)
    console.print("a\x1b[31mb\u202e", markup=False, highlight=False)
    table = Table.grid()
    table.add_row(Text("c\x9b"), Text("wide"))
    console.print(table)
    console.print(Text("bold", style="bold"))
    shown = stream.getvalue()
    assert "a\\u001b[31mb\\u202e\n" in shown
    assert "\x1b" not in shown
    assert "\x9b" not in shown
    assert "bold" in shown
