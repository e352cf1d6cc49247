"""`attnlab watch`: a study's progress in a browser, on this machine only."""

import webbrowser
from typing import Annotated

import typer

from attnlab.cli.options import Open, StudyFolder


def watch(
    folder: StudyFolder,
    port: Annotated[int, typer.Option(min=0, max=65535, help="On 127.0.0.1; default: a free one.")] = 0,
    is_opened: Open = False,
) -> int:
    """Show a study in a browser during and after its run; the page refreshes itself, and Ctrl-C ends it."""
    from attnlab.reports.watch import WatchServer

    with WatchServer(folder, port) as server:
        try:
            print(f"{server.address}\nfor this machine and whoever has the address; Ctrl-C ends it", flush=True)
            if is_opened and not webbrowser.open(server.address):
                print("no browser was found to open it with", flush=True)
            server.serve_forever()
        except KeyboardInterrupt:
            print()
    return 0
