"""The one table of verbs that is the whole command line, and `main`, which runs one of them.

Status 0 is done, 1 is that the answer is no, 2 is that the request was wrong, 130 is stopped by Ctrl-C.
"""

import io
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

import typer

from attnlab.cli import bench, demo, doctor, mechanisms
from attnlab.errors import AttnlabError

Verb = Callable[..., int]

# The first line of a verb's docstring is its help; what it returns is the exit status.
VERBS: Mapping[str, Verb] = {
    "demo": demo.demo,
    "mechanisms": mechanisms.print_catalog,
    "bench": bench.bench,
    "doctor": doctor.examine,
}

REFUSED = 2
INTERRUPTED = 130


def main(argv: Sequence[str] | None = None, verbs: Mapping[str, Verb] = VERBS) -> int:
    """Run one command line and return its exit status."""
    _replace_unprintable_characters()
    arguments = list(sys.argv[1:] if argv is None else argv) or ["--help"]
    try:
        status = _build(verbs)(args=arguments, prog_name="attnlab", standalone_mode=False)
    except AttnlabError as error:
        return _refuse(str(error))
    except typer.TyperException as error:
        return _refuse(f"{error.format_message()}\n{_help_hint(error)}", error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        status = INTERRUPTED
    if status == INTERRUPTED:
        print("attnlab: stopped", file=sys.stderr)
    return int(status or 0)


def _build(verbs: Mapping[str, Verb]) -> typer.Typer:
    # A traceback is only ever shown for a fault of attnlab's own, and then whole, so that it can be reported.
    app = typer.Typer(pretty_exceptions_enable=False, context_settings={"help_option_names": ["-h", "--help"]})
    app.callback()(_describe)
    for name, verb in verbs.items():
        app.command(name)(verb)
    return app


def _print_version(is_asked: bool) -> None:
    if is_asked:
        # Reading package metadata costs more than the rest of this module, and one option needs it.
        from importlib.metadata import version

        print(f"attnlab {version('attnlab')}")
        raise typer.Exit


def _describe(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Write an attention mechanism in one line, compute it fast, and see whether it holds."""


def _help_hint(error: typer.TyperException) -> str:
    context = getattr(error, "ctx", None)
    return f"`{context.command_path if context else 'attnlab'} --help` shows what there is."


def _refuse(message: str, status: int = REFUSED) -> int:
    print(f"attnlab: {message}", file=sys.stderr)
    return status


def _replace_unprintable_characters() -> None:
    """Let − or α come out as ? where a terminal cannot show them, instead of ending in a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
