"""`attnlab audit`: put every check to mechanisms, or to a model, and say what failed, why, and where to look."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attnlab.cli import plugin
from attnlab.cli.tables import print_below, print_json, print_table
from attnlab.errors import RequestError

if TYPE_CHECKING:
    from attnlab.audits import Audit, Finding

NOTHING = "–"
SHORT = {
    "causal leak": "leak",
    "prefix consistency": "prefix",
    "padding and batch invariance": "padding",
    "gradient flow": "gradients",
    "magnitude against length": "magnitude",
}
"""Names that head a column of the table of many mechanisms."""


def audit(
    lines: Annotated[
        list[str] | None, typer.Argument(metavar="MECHANISM…", help="Lines, or names of the catalog.")
    ] = None,
    catalog: Annotated[bool, typer.Option("--catalog", help="Audit every mechanism of the catalog.")] = False,
    model: Annotated[
        str | None, typer.Option(metavar="DIR_OR_NAME", help="Audit a Hugging Face model instead.")
    ] = None,
    causal: Annotated[
        bool | None,
        typer.Option("--causal/--no-causal", help="Whether a token sees no later one; both, or as the model says."),
    ] = None,
    train: Annotated[
        bool, typer.Option("--train", help="Also train a tiny model on random tokens: half a minute.")
    ] = False,
    only: Annotated[str | None, typer.Option(metavar="NAMES", help="Checks to put, with commas between.")] = None,
    details: Annotated[bool, typer.Option("--details", help="Print every number that was measured.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings for programs to read.")] = False,
    figure: Annotated[
        str | None, typer.Option(metavar="FILE", help="Draw leaks, growth and the rest: FILE.svg, .png, .html, .json.")
    ] = None,
    plugins: Annotated[
        list[str] | None,
        typer.Option("--plugin", metavar="FILE.py", help="Python that registers stages or checks of your own."),
    ] = None,
) -> int:
    """Ask whether mechanisms are sound: leaks, gradients, padding, numerics, growth. Status 1 where one is not."""
    # Imported here because the command line must answer --help without torch.
    from attnlab import charts

    for path in plugins or []:
        plugin.load_plugin(path)
    if figure is not None:
        charts.check(figure)
    checks = None if only is None else [name.strip() for name in only.split(",")]
    if train and model is not None:
        raise RequestError("--train puts a mechanism into a tiny model of its own; it does not go with --model")
    found: list[Audit] = []
    try:
        for subject in _find_subjects(lines or [], catalog, model, checks):
            found.append(_audit_subject(subject, causal, checks, train))
    except KeyboardInterrupt:
        if found and not as_json:
            _print_audits(found, details)
        raise
    if as_json:
        print_json(found[0].record() if len(found) == 1 and not catalog else [one.record() for one in found])
    elif len(found) > 1 or catalog:
        _print_audits(found, details)
    else:
        _print_audit(found[0], details)
    if figure is not None:
        figures = [one.figure() for one in found]
        has_one_panel = all(len(spec["concat"]) == 1 for spec in figures)
        charts.save(charts.stacked(figures, columns=2 if has_one_panel else 1), figure)
        print(f"drawn in {figure}", file=sys.stderr)
    return 0 if all(one.passed for one in found) else 1


def _find_subjects(
    lines: Sequence[str], catalog: bool, model: str | None, checks: Sequence[str] | None
) -> list[tuple[str, Any]]:
    """Return what is to be audited, by name; all that can be wrong with the request comes out here."""
    from attnlab.audits.audit import choose_checks
    from attnlab.mechanisms import CATALOG, Mechanism

    asked = [bool(lines), catalog, model is not None]
    if sum(asked) != 1:
        came = "nothing" if not any(asked) else "more than one of them"
        raise RequestError(
            f"an audit takes mechanisms, or --catalog, or --model; it got {came}. "
            'For example: attnlab audit "cosine | relu(divide=n)"'
        )
    if model is not None:
        # transformers takes seconds to import, and a mechanism alone does not need it.
        from attnlab.audits.in_model.loading import load

        choose_checks("model", checks, train=False)
        return [(model, load(model))]
    choose_checks("mechanism", checks, train=False)
    return [(line, Mechanism.parse(line)) for line in (lines or CATALOG)]


def _audit_subject(subject: tuple[str, Any], causal: bool | None, checks: Sequence[str] | None, train: bool) -> Audit:
    """Audit one mechanism or model, with its progress on a terminal."""
    from attnlab.audits import audit as run

    name, what = subject
    done = run(what, causal=causal, checks=checks, train=train, progress=_make_progress(name))
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
    return done


def _make_progress(name: str) -> Callable[[str], None] | None:
    """Return what says on a terminal which check is being put, in one line that the next one replaces."""
    if not sys.stderr.isatty():
        return None
    return lambda check: print(f"\r\x1b[K{name}: {check}", end="", file=sys.stderr, flush=True)


def _print_audit(audit: Audit, details: bool) -> None:
    """Print every finding of one audit with its sentence."""
    from attnlab.audits.finding import show

    print(f"{audit.subject}: {audit.ways}, {audit.seconds:.1f} s")
    width = max(len(name) for name in audit.findings) if audit.findings else 0
    for finding in audit.findings.values():
        bound = "" if finding.bound is None else f"  (at most {show(finding.bound)})"
        print(f"\n{finding.verdict:8}  {finding.name.ljust(width)}  {show(finding.figure)}{bound}")
        _print_sentence(finding)
        if details:
            _print_parts(finding)
    print(f"\n{_summarize(audit)}")


def _print_sentence(finding: Finding) -> None:
    """Print a finding's sentence, and where to look where it failed."""
    print_below(finding.sentence)
    if not finding.passed and finding.where:
        print_below(f"Look at {finding.where}.")


def _print_parts(finding: Finding) -> None:
    """Print everything that was measured for one finding."""
    from attnlab.audits.finding import show

    rows = [
        ("ok" if part.passed else "NO", show(part.figure), show(part.bound), part.name, part.note)
        for part in finding.parts
    ]
    if rows:
        print_table(("", "figure", "bound", "measured", "of"), rows)


def _print_audits(audits: Sequence[Audit], details: bool) -> None:
    """Print one table of all verdicts, and below it why each that failed did."""
    from attnlab.audits.finding import show

    names = list(dict.fromkeys(name for audit in audits for name in audit.findings))
    rows = [(_shorten_line(audit.subject), *(_format_verdict(audit, name) for name in names)) for audit in audits]
    print_table(("mechanism", *(SHORT.get(name, name) for name in names)), rows)
    for audit in audits:
        for finding in audit.findings.values():
            if details or not finding.passed:
                bound = "" if finding.bound is None else f", {show(finding.figure)} (at most {show(finding.bound)})"
                print(f"\n{_shorten_line(audit.subject)}: {finding.name} {finding.verdict}{bound}")
                _print_sentence(finding)
    num_failed = sum(not audit.passed for audit in audits)
    seconds = sum(audit.seconds for audit in audits)
    print(f"\n{len(audits) - num_failed} of {len(audits)} passed these checks, {num_failed} failed; {seconds:.0f} s")


def _shorten_line(line: str) -> str:
    """Name a mechanism of the catalog by its name, and any other by its line."""
    from attnlab.mechanisms import CATALOG

    return next((name for name, entry in CATALOG.items() if str(entry.mechanism) == line), line)


def _format_verdict(audit: Audit, name: str) -> str:
    """Write one verdict, or that the question does not apply."""
    return audit.findings[name].verdict if name in audit.findings else NOTHING


def _summarize(audit: Audit) -> str:
    """Say in one line what came out."""
    if not audit.findings:
        return "None of these checks applies: leaks are asked where causal, value paths where there is one."
    if audit.passed:
        return f"Sound: every check passed ({len(audit.findings)})."
    return f"FAILED: {', '.join(finding.name for finding in audit.failed)}"
