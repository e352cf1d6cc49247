"""The table of all verbs, and `main`, which runs one.

Exit status: 0 done, 1 the answer is no, 2 a wrong request, 3 a bug in attnlab, 130 stopped by Ctrl-C, 141 the reader
closed the pipe.
"""

import codecs
import functools
import io
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TextIO

import typer

from attnlab.cli import (
    audit,
    bench,
    compare,
    construct,
    data,
    demo,
    doctor,
    explain,
    export,
    generate,
    inspect,
    judge,
    mechanisms,
    new,
    plan,
    recipes,
    register,
    report,
    run,
    score,
    train,
    watch,
)
from attnlab.cli.docstrings import read_first_sentence
from attnlab.cli.options import takes_plugins
from attnlab.cli.plugin import blame_plugins
from attnlab.cli.usage import explain_usage
from attnlab.cli.wrapping import wrap_terminals
from attnlab.errors import AttnlabError, AttnlabWarning
from attnlab.visible import make_visible, print_visibly

Verb = Callable[..., int]

# The first sentence of a verb's docstring is its help; what it returns is the exit status.
VERBS: Mapping[str, Verb] = {
    "demo": demo.demo,
    "mechanisms": mechanisms.print_catalog,
    "explain": explain.print_explanation,
    "audit": audit.audit,
    "bench": bench.bench,
    "construct": construct.construct,
    "data": data.data,
    "score": score.score,
    "judge": judge.judge,
    "train": train.train,
    "recipes": recipes.recipes,
    "new": new.new,
    "register": register.register,
    "run": run.run,
    "watch": watch.watch,
    "plan": plan.plan,
    "compare": compare.compare,
    "report": report.report,
    "generate": generate.generate,
    "inspect": inspect.inspect,
    "export": export.export,
    "doctor": doctor.examine,
}

EXAMPLES: Mapping[str, str] = {
    "bench": 'attnlab bench "cosine | relu(divide=n)" --lengths 256,512',
    "compare": "attnlab compare study, or attnlab compare base.csv new.csv",
    "construct": "attnlab construct select --index 0",
    "data": "attnlab data embedded:pydoc --tokenizer wordpiece",
    "export": "attnlab export study/runs/ID --out model",
    "generate": 'attnlab generate run --prompt "The list"',
    "inspect": 'attnlab inspect run --text "The list is sorted"',
    "explain": 'attnlab explain "cosine | relu(divide=n)"',
    "train": "attnlab train clm --architecture gpt2 --data embedded:pydoc --tokenizer wordpiece:4000 --out run",
    "judge": "attnlab judge results.csv",
    "new": 'attnlab new "cosine | relu(divide=n)"',
    "plan": "attnlab plan study.toml --pilot pilot",
    "register": "attnlab register study.toml",
    "report": "attnlab report study --open",
    "run": "attnlab run study.toml --out study --workers 2",
    "watch": "attnlab watch study --open",
    "score": "attnlab score squad --data dev-v1.1.json --predictions predictions.json",
}
"""Printed if a required argument of a verb is missing."""

UNKNOWN = ("unknown stage", "no stage and no catalog entry is named", "no mixer is named")
"""What errors say of a name that a file of the user's own may define."""

REFUSED = 2
BUG = 3
INTERRUPTED = 130
PIPE_CLOSED = 141


def main(argv: Sequence[str] | None = None, verbs: Mapping[str, Verb] = VERBS) -> int:
    """Run one command line and return its exit status."""
    _replace_unprintable_characters()
    arguments = list(sys.argv[1:] if argv is None else argv) or ["--help"]
    with wrap_terminals(), warnings.catch_warnings():
        warnings.showwarning = _show_warning
        try:
            # Typer takes a millisecond per verb to read its options, so only the one that was typed is built.
            chosen = {name: verbs[name] for name in arguments[:1] if name in verbs} or verbs
            status = _build(chosen)(args=arguments, prog_name="attnlab", standalone_mode=False)
            # At the end of the interpreter a closed pipe would print a traceback.
            sys.stdout.flush()
        except AttnlabError as error:
            return _refuse(f"{error}{_hint_at_plugins(str(error), arguments, chosen)}")
        except typer.TyperException as error:
            return _refuse(f"{explain_usage(error)}\n{_help_hint(error)}", error.exit_code)
        except (KeyboardInterrupt, typer.Abort):
            status = INTERRUPTED
        except (BrokenPipeError, SystemExit):
            # The reader, such as `head`, has closed the pipe. Typer turns its own BrokenPipeError into a SystemExit.
            _discard_output()
            return PIPE_CLOSED
        except OSError as error:
            if error.filename is not None:
                return _refuse(f"{error.filename}: {error.strerror}; give another path, or change this one")
            # An error without a file name comes from writing to standard output.
            _discard_output()
            return _refuse(f"cannot write the output: {error.strerror}")
        except MemoryError:
            return _refuse("there is not enough memory for this; ask for less, such as a shorter length")
        except Exception as error:
            return _report_bug(error, arguments)
        if status == INTERRUPTED:
            print("attnlab: stopped", file=sys.stderr)
        return int(status or 0)


def _hint_at_plugins(message: str, arguments: Sequence[str], chosen: Mapping[str, Verb]) -> str:
    """Return how a verb is given a stage that it does not know, if it takes any and got none."""
    is_unknown = any(words in message for words in UNKNOWN) and "--plugin" not in (*arguments, *message.split())
    takes_any = any(takes_plugins(verb) for verb in chosen.values())
    return "\n(a stage of your own comes with --plugin FILE.py)" if is_unknown and takes_any else ""


def _report_bug(error: Exception, arguments: Sequence[str]) -> int:
    """Write everything that a report of a bug needs into a file; return the exit status."""
    # Imported here because only a bug needs them.
    import shlex
    import tempfile
    import traceback

    command, what = shlex.join(["attnlab", *arguments]), traceback.format_exception_only(error)[-1].strip()
    where = "which could not be written to a file"
    try:
        with tempfile.NamedTemporaryFile("wb", prefix="attnlab-", suffix=".log", delete=False) as log:
            text = f"{command}\nPython {sys.version}\n\n{''.join(traceback.format_exception(error))}"
            log.write(text.encode("utf-8", "backslashreplace"))
        where = f"which is in {log.name}"
    except OSError:
        pass
    message = f"this is a bug in attnlab, not in what you typed: `{command}` ended with {what}"
    return _refuse(f"{message}. Please report it with its full log, {where}.", BUG)


def _build(verbs: Mapping[str, Verb]) -> typer.Typer:
    app = typer.Typer(
        pretty_exceptions_enable=False, rich_markup_mode=None, context_settings={"help_option_names": ["-h", "--help"]}
    )
    app.callback()(_describe)
    for name, verb in verbs.items():
        # Without a short help, the list of verbs would cut the sentence.
        app.command(name, short_help=read_first_sentence(verb))(_print_visibly(verb))
    return app


def _print_visibly(verb: Verb) -> Verb:
    @functools.wraps(verb)
    def run_verb(*arguments: Any, **options: Any) -> int:
        with print_visibly(), blame_plugins():
            return verb(*arguments, **options)

    return run_verb


def _print_version(is_given: bool) -> None:
    if is_given:
        # Imported here because reading package metadata is slow.
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
    is_missing = context is not None and error.format_message().startswith("Missing")
    example = EXAMPLES.get(context.info_name or "") if context is not None and is_missing else None
    shown = f"For example: {example}\n" if example else ""
    return f"{shown}`{context.command_path if context else 'attnlab'} --help` lists the options."


def _show_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, file: TextIO | None = None,
    line: str | None = None,
) -> None:  # fmt: skip
    """Print a warning of attnlab as one line, and any other as Python does."""
    if issubclass(category, AttnlabWarning):
        print(f"attnlab: warning: {str(message).removeprefix('attnlab: ')}", file=sys.stderr)
    else:
        print(warnings.formatwarning(message, category, filename, lineno, line), end="", file=file or sys.stderr)


def _discard_output() -> None:
    """Discard buffered output, which the interpreter would otherwise try to write again at its end."""
    if sys.__stdout__ is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno())


def _refuse(message: str, status: int = REFUSED) -> int:
    print(make_visible(f"attnlab: {message}"), file=sys.stderr)
    return status


PLAIN = str.maketrans({
    "−": "-", "–": "-", "·": "*", "×": "x", "÷": "/", "½": "1/2", "²": "2", "⁵": "^5", "√": "sqrt ", "→": "->",
    "≤": "<=", "≥": ">=", "…": "...", "’": "'", "█": "#", "▓": "#", "▒": "+", "░": ".", "∞": "inf", "α": "alpha",
    "±": "+-",
})  # fmt: skip
"""Replacements for characters that a terminal cannot print: a minus that became ? would change the number."""


def _plain(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    unprintable = error.object[error.start : error.end]
    return unprintable.translate(PLAIN).encode("ascii", "replace").decode(), error.end


def _replace_unprintable_characters() -> None:
    """Print − or α as - or alpha if a terminal cannot show them, instead of a traceback."""
    codecs.register_error("attnlab", _plain)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="attnlab")
