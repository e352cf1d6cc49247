"""Arms that see future tokens, by the audits of their mechanism alone and in a model; and other audits that failed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..plan.audit_keys import lines_of
from .finding import Finding, list_first

if TYPE_CHECKING:
    from ..answers.study_folder import Record

CHECK = "a leaking arm"
UNSOUND = "a failed audit"
UNASKED = "a missing audit"


def check_leaks(record: Record) -> Iterator[Finding]:
    """Look at the audits of every arm."""
    for arm in record.design.arms:
        failed = [
            (key, str(one["name"]), str(one["sentence"]))
            for key in record.audits.get(arm, ()) for one in record.audit_of(key) if not one["passed"]
        ]  # fmt: skip
        keys = list(dict.fromkeys(key for key, name, _ in failed if "leak" in name))
        if arm in record.obstacles or keys:
            sentences = [sentence.rstrip(".") for _, name, sentence in failed if "leak" in name]
            said = sentences[0] if sentences else record.obstacles[arm]
            where = f" (audited: {list_first(keys)})" if keys else ""
            yield Finding(
                CHECK, f"arm '{arm}': {said}{where}; this arm is not compared", data={"arm": arm, "audits": keys}
            )
        others = [f"{name} of {key}" for key, name, _ in failed if "leak" not in name]
        if others:
            yield Finding(UNSOUND, f"arm '{arm}': {list_first(others)}", is_fault=False, data={"arm": arm})


def check_asked(record: Record) -> Iterator[Finding]:
    """Find arms that could not be audited in every size that they are installed in."""
    design = record.design
    asked = {arm: len(record.audits.get(arm, ())) for arm in design.arms}
    missing = [f"'{arm}'" for arm in asked if asked[arm] < len(lines_of(design, arm)) + len(design.sizes)]
    if missing:
        said = f"arms that were not audited in the model of every size: {list_first(missing)}"
        yield Finding(UNASKED, said, is_fault=False)
