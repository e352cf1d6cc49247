"""`attnlab watch`: a study's progress in a browser, on this machine alone."""

from __future__ import annotations

import webbrowser
from typing import Annotated

import typer


def watch(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="The folder of a study.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="Of 127.0.0.1; one that is free if left out.")] = 0,
    is_opened: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> int:
    """Show a study in a browser while it runs, and after; the page renews itself, and Ctrl-C ends it."""
    # Imported here because the command line must answer --help without torch.
    from attnlab.reports.watch import WatchServer

    with WatchServer(folder, port) as window:
        try:
            print(f"{window.address}\nfor this machine and whoever has the address; Ctrl-C ends it", flush=True)
            if is_opened and not webbrowser.open(window.address):
                print("no browser was found to open it with", flush=True)
            window.serve_forever()
        except KeyboardInterrupt:
            print()
    return 0
