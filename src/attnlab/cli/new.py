"""`attnlab new`: a study file for a mechanism, ready to run and to edit."""

import re
from pathlib import Path
from typing import Annotated

import typer

from attnlab.cli.options import Plugins
from attnlab.cli.plugin import load_plugins
from attnlab.errors import RequestError
from attnlab.inputs import expand_path

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,50}")
TEMPLATE = Path(__file__).with_name("new.toml")


def new(
    mechanism: Annotated[str, typer.Argument(metavar="MECHANISM", help="A line, or a name of the catalog.")],
    out: Annotated[str, typer.Option(metavar="FILE", help="The study file to write.")] = "study.toml",
    name: Annotated[str, typer.Option(help="The name of the arm.")] = "idea",
    baseline: Annotated[str, typer.Option(metavar="LINE", help="The mechanism it is compared with.")] = "dot | softmax",
    plugin: Plugins = None,
) -> int:
    """Write a study file that compares a mechanism with a baseline, on data that comes with attnlab."""
    load_plugins(plugin)
    import jinja2

    from attnlab.mechanisms import Mechanism
    from attnlab.studies.file.reading import read_design

    lines = {"mechanism": str(Mechanism.parse(mechanism)), "baseline": str(Mechanism.parse(baseline))}
    if lines["mechanism"] == lines["baseline"]:
        raise RequestError(f"'{mechanism}' is the baseline itself; give another mechanism, or --baseline LINE")
    if not NAME.fullmatch(name) or name == "baseline":
        raise RequestError(f"--name takes letters, digits, - and _, and not 'baseline'; it has '{name}'")
    flags = "".join(f" --plugin {path}" for path in plugin or [])
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True, autoescape=False)
    text = environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        **lines, name=name, file=out, flags=flags
    )
    target = expand_path(out)
    write_new(target, text)
    try:
        read_design(target)
    except BaseException:
        target.unlink()
        raise
    print(f"{target} compares '{lines['mechanism']}' with '{lines['baseline']}' over 5 paired seeds. Try and run it:")
    print(f"  attnlab run {target} --budget smoke --out try{flags}")
    print(f"  attnlab run {target} --out study --workers 2{flags}")
    return 0


def write_new(target: Path, text: str) -> None:
    """Write a new file; refuse one that exists."""
    try:
        content = text.encode()
        opened = target.open("xb")
    except FileExistsError as error:
        raise RequestError(f"{target} exists already; give another path with --out FILE") from error
    except ValueError as error:
        raise RequestError(f"cannot write {str(target)!r}: {error}") from error
    except OSError as error:
        raise RequestError(f"cannot write {target}: {error.strerror}") from error
    try:
        with opened:
            opened.write(content)
    except OSError as error:
        target.unlink()  # a part of a study file would be taken for one
        raise RequestError(f"cannot write {target}: {error.strerror}") from error
