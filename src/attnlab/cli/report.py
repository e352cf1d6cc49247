"""`attnlab report`: the page, tables and figures of a study's folder, at any time."""

from __future__ import annotations

import sys
import webbrowser
from typing import Annotated

import typer

from attnlab.cli import plugin as plugins
from attnlab.errors import AttnlabError, RequestError


def report(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="The folder of a study.")],
    plugin: Annotated[list[str] | None, typer.Option(metavar="FILE.py", help="Stages of your own; repeat it.")] = None,
    is_opened: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> int:
    """Write the report of a study: one page that opens offline, tables and figures."""
    for own in plugin or []:
        plugins.load_plugin(own)
    # Imported here because the command line must answer --help without torch.
    from attnlab.reports import write_report

    page = write_report(folder).resolve()
    print(f"the report is {page}; tables and figures are beside it")
    if is_opened and not webbrowser.open(page.as_uri()):
        raise RequestError(f"no browser could be started here; open {page} yourself")
    return 0


def report_after_run(folder: str, *, is_quiet: bool) -> None:
    """Write the report of a study that was just run; trouble with it is said, and costs nothing of the answer."""
    from attnlab.reports import write_report

    try:
        page = write_report(folder)
    except AttnlabError as error:
        print(f"attnlab: the report was not written: {error}", file=sys.stderr)
    except Exception as error:  # the verdict is out, and a fault in drawing must not change the run's status
        said = f"{type(error).__name__}: {error}"
        print(f"attnlab: the report was not written ({said}); attnlab report {folder} shows where", file=sys.stderr)
    else:
        if not is_quiet:
            print(f"the report is {page}")
