"""`attnlab mechanisms --page`: compute, check and time every mechanism of the catalog, and write a page."""

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from attnlab.cli.tables import print_table, show_progress
from attnlab.errors import RequestError
from attnlab.inputs import expand_path

if TYPE_CHECKING:
    from attnlab.reports.catalog.catalog_results import MechanismResult

COLUMNS = ("mechanism", "kernel", "time", "time ÷ SDPA", "memory", "memory ÷ SDPA", "largest error", "agrees")


def print_catalog_results(out: str) -> int:
    """Compute, check and time every named mechanism, in about a minute, and write a page."""
    from attnlab.reports.catalog import catalog_page, catalog_results

    target = _prepare_folder(out)
    shown = catalog_results.run_catalog(catalog_results.PLAN, _show_step)
    print(f"{shown.machine}\nTime and memory: {shown.where_costs}\nLargest error: {shown.where_checked}")
    print_table(COLUMNS, [_make_row(result) for result in shown.mechanisms])
    remainder = f"; {shown.remainder}" if shown.remainder else ""
    print(f"{shown.score} agree with the fp64 reference, outputs and gradients{remainder}")
    print(shown.audited)
    command = shlex.join(["attnlab", "mechanisms", "--page", out])
    target.write_text(catalog_page.render_catalog_page(shown, command), encoding="utf-8")
    print(f"The page is {target}; any browser opens it, without a network.")
    return 0 if shown.holds else 1


def _prepare_folder(folder: str) -> Path:
    target = expand_path(folder) / "mechanisms.html"
    if target.parent.is_file():
        raise RequestError(f"--page needs a folder; {folder} is a file")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RequestError(f"cannot write the page to {target}: {error.strerror}") from error
    if target.is_dir() or not os.access(target if target.exists() else target.parent, os.W_OK):
        raise RequestError(f"cannot write the page to {target}: it is not writable")
    return target


def _show_step(done: int, total: int, what: str) -> None:
    show_progress("" if done == total else f"{done + 1} of {total}: {what}")


def _make_row(result: "MechanismResult") -> tuple[str, ...]:
    from attnlab.kernels.measure import show_bytes, show_seconds, three_digits

    return (
        result.entry.name, result.choice.kernel, show_seconds(result.own.seconds), three_digits(result.time_ratio),
        show_bytes(result.own.memory), three_digits(result.memory_ratio), f"{result.agreement.error:.1e}",
        result.verdict,
    )  # fmt: skip
