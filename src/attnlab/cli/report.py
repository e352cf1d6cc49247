"""`attnlab report`: the page, tables and figures of a study's folder, at any time."""

import sys
import webbrowser
from typing import Annotated

import typer

from attnlab.cli.options import Open, Plugins, StudyFolder
from attnlab.cli.plugin import load_plugins
from attnlab.errors import AttnlabError


def report(
    folder: StudyFolder,
    out: Annotated[str, typer.Option(metavar="DIR", help="Where to write it; default: the study's folder.")] = "",
    plugin: Plugins = None,
    is_opened: Open = False,
) -> int:
    """Write the report of a study: one page that opens offline, tables and figures."""
    load_plugins(plugin)
    from attnlab.reports import write_report

    page = write_report(folder, out or None).resolve()
    print(f"the report is {page}; tables and figures are beside it")
    if is_opened and not webbrowser.open(page.as_uri()):
        print("no browser was found to open it with", file=sys.stderr)
    return 0


def report_after_run(folder: str, *, is_quiet: bool) -> None:
    """Write the report of a study that was just run; an error is printed and does not change the exit status."""
    from attnlab.reports import write_report

    try:
        page = write_report(folder)
    except AttnlabError as error:
        print(f"attnlab: the report was not written: {error}", file=sys.stderr)
    except Exception as error:  # the verdicts are printed, and a bug in drawing must not change the run's status
        reason = f"{type(error).__name__}: {error}"
        print(f"attnlab: the report was not written ({reason}); attnlab report {folder} shows where", file=sys.stderr)
    else:
        if not is_quiet:
            print(f"the report is {page}")
