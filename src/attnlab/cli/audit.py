"""`attnlab audit`: run every check on mechanisms or a model; print what failed, why, and where to look."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attnlab.check_names import find_check
from attnlab.cli.options import AsJson, FigureFile, Plugins
from attnlab.cli.plugin import load_plugins
from attnlab.cli.tables import print_below, print_json, print_table, show_progress
from attnlab.errors import RequestError
from attnlab.hub import check_available

if TYPE_CHECKING:
    from attnlab.audits import Audit, Finding

NOTHING = "–"
SHORT = {
    "causal leak": "leak",
    "prefix consistency": "prefix",
    "padding and batch invariance": "padding",
    "gradient flow": "gradient",
    "magnitude against length": "magnitude",
}
"""Column names in the table of several mechanisms; --only takes them too."""


def audit(
    lines: Annotated[
        list[str] | None, typer.Argument(metavar="MECHANISM…", help="Lines, or names of the catalog.")
    ] = None,
    catalog: Annotated[bool, typer.Option("--catalog", help="Audit every mechanism of the catalog.")] = False,
    model: Annotated[str | None, typer.Option(metavar="DIR_OR_NAME", help="Audit a Hugging Face model.")] = None,
    causal: Annotated[
        bool | None, typer.Option("--causal/--no-causal", help="Default: both, or the is_causal of the model.")
    ] = None,
    train: Annotated[bool, typer.Option("--train", help="Also train a tiny model: half a minute.")] = False,
    only: Annotated[str | None, typer.Option(metavar="NAMES", help="The checks to run, separated by commas.")] = None,
    details: Annotated[bool, typer.Option("--details", help="Print every measured number.")] = False,
    as_json: AsJson = False,
    figure: FigureFile = None,
    plugins: Plugins = None,
) -> int:
    """Check whether mechanisms are sound: leaks, gradients, padding, numerics, growth. Status 1 if one is not."""
    checks = None if only is None else [name.strip() for name in only.split(",")]
    if not plugins:  # which may bring checks; without them a wrong name is found before torch is imported
        for name in checks or ():
            find_check(name, "mechanism" if model is None else "model")
    from attnlab import charts

    load_plugins(plugins)
    if figure is not None:
        charts.check(figure)
    if train and model is not None:
        raise RequestError("--train installs a mechanism in a tiny model; it cannot be used with --model")
    if model is not None:
        check_available(model)  # here, since torch and transformers take seconds to import
    audits: list[Audit] = []
    try:
        for subject in _find_subjects(lines or [], catalog, model, checks):
            audits.append(_audit_subject(subject, causal, checks, train))
    except KeyboardInterrupt:
        if audits and not as_json:
            _print_audits(audits, details)
        raise
    if as_json:
        print_json(audits[0].record() if len(audits) == 1 and not catalog else [audit.record() for audit in audits])
    elif len(audits) > 1 or catalog:
        _print_audits(audits, details)
    else:
        _print_audit(audits[0], details)
    if figure is not None:
        figures = [audit.figure() for audit in audits]
        has_one_panel = all(len(spec["concat"]) == 1 for spec in figures)
        charts.save(charts.stack(figures, columns=2 if has_one_panel else 1), figure)
        print(f"drawn in {figure}", file=sys.stderr)
    return 0 if all(audit.passed for audit in audits) else 1


def _find_subjects(
    lines: Sequence[str], catalog: bool, model: str | None, checks: Sequence[str] | None
) -> list[tuple[str, Any]]:
    # All mistakes of the request are found here, before the first audit.
    from attnlab.audits.audit import choose_checks, parse_subject
    from attnlab.mechanisms import CATALOG

    given = [bool(lines), catalog, model is not None]
    if sum(given) != 1:
        number = "more than one of them" if any(given) else "nothing"
        raise RequestError(
            f"an audit takes mechanisms, or --catalog, or --model; it got {number}. "
            'For example: attnlab audit "cosine | relu(divide=n)"'
        )
    if model is not None:
        # transformers takes seconds to import, and only models need it.
        from attnlab.audits.in_model.loading import load

        choose_checks("model", checks, train=False)
        return [(model, load(model))]
    choose_checks("mechanism", checks, train=False)
    return [(line, parse_subject(line)) for line in (lines or CATALOG)]


def _audit_subject(subject: tuple[str, Any], causal: bool | None, checks: Sequence[str] | None, train: bool) -> "Audit":
    from attnlab.audits import audit as run

    name, what = subject
    done = run(
        what, causal=causal, checks=checks, train=train, progress=lambda check: show_progress(f"{name}: {check}")
    )
    show_progress("")
    return done


def _print_audit(audit: "Audit", details: bool) -> None:
    from attnlab.audits.finding import show, show_figure

    print(f"{audit.subject}: {audit.ways}, {audit.seconds:.1f} s")
    width = max(len(name) for name in audit.findings) if audit.findings else 0
    for finding in audit.findings.values():
        bound = "" if finding.bound is None else f"  (at most {show(finding.bound)})"
        print(f"\n{finding.verdict:8}  {finding.name.ljust(width)}  {show_figure(finding)}{bound}")
        _print_sentence(finding)
        if details:
            _print_parts(finding)
    print(f"\n{_summarize(audit)}")


def _print_sentence(finding: "Finding") -> None:
    print_below(finding.sentence)
    if not finding.passed and finding.where:
        print_below(f"Cause: {finding.where}.")


def _print_parts(finding: "Finding") -> None:
    from attnlab.audits.finding import show, show_figure

    rows = [
        ("ok" if part.passed else "NO", show_figure(part), show(part.bound), part.name, part.note)
        for part in finding.parts
    ]
    if rows:
        print_table(("", "figure", "bound", "measured", "of"), rows)


def _print_audits(audits: Sequence["Audit"], details: bool) -> None:
    from attnlab.audits.finding import show, show_figure

    names = list(dict.fromkeys(name for audit in audits for name in audit.findings))
    rows = [
        (
            _shorten_line(audit.subject),
            *(audit.findings[name].verdict if name in audit.findings else NOTHING for name in names),
        )
        for audit in audits
    ]
    print_table(("mechanism", *(SHORT.get(name, name) for name in names)), rows)
    for audit in audits:
        for finding in audit.findings.values():
            if details or not finding.passed:
                bound = "" if finding.bound is None else f", {show_figure(finding)} (at most {show(finding.bound)})"
                print(f"\n{_shorten_line(audit.subject)}: {finding.name} {finding.verdict}{bound}")
                _print_sentence(finding)
    num_failed = sum(not audit.passed for audit in audits)
    seconds = sum(audit.seconds for audit in audits)
    print(f"\n{len(audits) - num_failed} of {len(audits)} passed these checks, {num_failed} failed; {seconds:.0f} s")


def _shorten_line(line: str) -> str:
    from attnlab.mechanisms import CATALOG

    return next((name for name, entry in CATALOG.items() if str(entry.mechanism) == line), line)


def _summarize(audit: "Audit") -> str:
    if not audit.findings:
        return "None of these checks applies: leaks are checked if causal, value paths if there is one."
    if audit.passed:
        return f"Sound: every check passed ({len(audit.findings)})."
    return f"FAILED: {', '.join(finding.name for finding in audit.failed)}"
