"""What a study declared before its results were looked at, and whether a verdict is as declared.

`attnlab register` writes a declaration into the ledger; without it the first verdict that is printed becomes one.
Every printed verdict is an event, so that a later one can say whether anything changed in between: more seeds, other
arms, another threshold. Each further look at a fresh p value adds false positives (18.5 % after looking at 5, 6, … 20
seeds), so a verdict that was not declared is judged by the e-process, which stays valid under any rule for stopping.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from attnlab.errors import StudyError
from attnlab.statistics.verdict import FEWEST_SEEDS

from ..file.design import Design
from ..ledger.database import Ledger

REGISTRATION, VERDICT = "registration", "verdict"
"""What the ledger calls these events."""
AS_REGISTERED = "AS REGISTERED"
CHANGED = "CHANGED AFTER LOOKING ({})"
UNDECLARED = "UNDECLARED LOOK ({})"

UNDECIDING = (
    "smallest", "evaluate_every", "checkpoint_every", "log_every", "trace_every", "sample_every", "prompts",
    "sentences", "num_tokens", "num_scored",
)  # fmt: skip
"""Settings of a phase that change no result, or are declared apart."""


@dataclass(frozen=True)
class Declaration:
    """What decides a study's verdicts: arms, seeds, looks, thresholds, and the comparisons that are one family."""

    baseline: str
    arms: Mapping[str, str]
    """Each arm's mechanism and settings."""
    seeds: Sequence[int]
    looks: Sequence[int] | str | None
    smallest: Mapping[str, float]
    """By phase; phases without one compare nothing."""
    sizes: Mapping[str, str]
    training: Mapping[str, str]
    """A hash of each phase's settings."""

    @classmethod
    def of(cls, design: Design) -> Declaration:
        """Return what a design declares."""
        return cls(
            design.baseline,
            {name: _plain(arm.model_dump(mode="json")) for name, arm in design.arms.items()},
            list(design.seeds),
            design.looks,
            {phase.name: phase.smallest for phase in design.phases if phase.smallest is not None},
            {name: _digest(size.model_dump(mode="json")) for name, size in design.sizes.items()},
            {
                phase.name: _digest(phase.model_dump(mode="json", exclude=set(UNDECIDING)))
                for phase in design.phases
            },
        )  # fmt: skip

    @property
    def digest(self) -> str:
        """A hash to publish."""
        return _digest(asdict(self))

    def allows_seeds(self, seeds: Sequence[int]) -> bool:
        """Tell whether a look at these seeds was declared: all of them at once, or as many as a declared look has."""
        if self.looks == "open":
            return True
        if isinstance(self.looks, str) or self.looks is None:
            return list(seeds) == list(self.seeds)
        shared = min(len(seeds), len(self.seeds))
        return len(seeds) in self.looks and list(seeds[:shared]) == list(self.seeds[:shared])


@dataclass(frozen=True)
class Look:
    """A verdict that was printed: what was declared at the time, and which results it was made of."""

    declaration: Declaration
    results: str
    """A hash of the runs and their figures."""
    is_look: bool
    """Whether any comparison had seeds enough for a verdict; less than that shows nothing that could be chosen by."""


@dataclass(frozen=True)
class RegistrationStatus:
    """Whether a verdict is as declared."""

    words: str = ""
    """AS REGISTERED, CHANGED AFTER LOOKING (…), UNDECLARED LOOK (2nd), or nothing for a first verdict."""
    note: str = ""
    is_declared: bool = True
    """Whether the declared test may decide; otherwise the e-process does."""


def list_changes(declared: Declaration, now: Declaration) -> list[str]:
    """List the differences between two declarations, in a few words each."""
    changes = [*_compare_names("arms", declared.arms, now.arms), *_compare_names("sizes", declared.sizes, now.sizes)]
    if declared.baseline != now.baseline:
        changes.append(f"baseline {declared.baseline} → {now.baseline}")
    if not declared.allows_seeds(now.seeds):
        same_number = len(declared.seeds) == len(now.seeds)
        changes.append("other seeds" if same_number else f"seeds {len(declared.seeds)} → {len(now.seeds)}")
    if declared.looks != now.looks:
        changes.append(f"looks {_show_looks(declared.looks)} → {_show_looks(now.looks)}")
    for phase in dict.fromkeys([*declared.smallest, *now.smallest]):
        before, after = declared.smallest.get(phase), now.smallest.get(phase)
        if before != after:
            changes.append(f"smallest of {phase} {_show_number(before)} → {_show_number(after)}")
    changes += [
        f"training of {phase}" for phase, own in now.training.items() if declared.training.get(phase, own) != own
    ]
    return changes


def check_registration(ledger: Ledger, design: Design, results: str) -> RegistrationStatus:
    """Compare a verdict on these results with what was declared before it."""
    now = Declaration.of(design)
    earlier = list(_list_earlier_looks(ledger, now, results))
    registered = _read_registration(ledger)
    if not earlier:
        return _check_first_verdict(registered, now)
    declared = registered or earlier[0].declaration
    changed = list_changes(declared, now)
    seen = list(dict.fromkeys(tuple(look.declaration.seeds) for look in earlier))
    words = [CHANGED.format("; ".join(changed))] if changed else []
    if tuple(now.seeds) not in seen and not declared.allows_seeds(now.seeds):
        words.append(UNDECLARED.format(_ordinal(len(seen) + 1)))
    if not words:
        return RegistrationStatus(AS_REGISTERED, "nothing that decides the verdicts was changed since it was declared")
    note = (
        "a verdict had been printed before this was changed; the e-process decides, which stays valid however often "
        "one looks, and needs more seeds"
    )
    return RegistrationStatus(", ".join(words), note, is_declared=False)


def register(ledger: Ledger, design: Design) -> Declaration:
    """Write what a study declares into its ledger; refused after a verdict was printed."""
    if any(look.is_look for look in _read_looks(ledger)):
        raise StudyError(
            f"{ledger.path.parent} has printed verdicts already, so that nothing can be registered there beforehand; "
            "register the study in another folder, before it is run"
        )
    declaration = Declaration.of(design)
    ledger.say_news(REGISTRATION, json.dumps(asdict(declaration)))
    return declaration


def note_verdict(ledger: Ledger, design: Design, results: str, is_look: bool) -> None:
    """Write a printed verdict into the ledger, unless it is there already."""
    declaration = Declaration.of(design)
    if any((look.declaration, look.results) == (declaration, results) for look in _read_looks(ledger)):
        return
    ledger.say(VERDICT, json.dumps({"declaration": asdict(declaration), "results": results, "is_look": is_look}))


def _read_registration(ledger: Ledger) -> Declaration | None:
    events = ledger.events(REGISTRATION)
    return Declaration(**json.loads(events[-1])) if events else None


def _read_looks(ledger: Ledger) -> list[Look]:
    looks = (json.loads(event) for event in ledger.events(VERDICT))
    return [Look(Declaration(**look["declaration"]), look["results"], look["is_look"]) for look in looks]


def _check_first_verdict(registered: Declaration | None, now: Declaration) -> RegistrationStatus:
    """Check the first verdict: nothing had been looked at, so no change can have been chosen by results."""
    is_possible = now.looks is None or replace(now, seeds=now.seeds[:1]).allows_seeds(now.seeds)
    if not is_possible and len(now.seeds) >= FEWEST_SEEDS:
        declared = f"{len(now.seeds)} seeds are none of the declared looks ({_show_looks(now.looks)})"
        return RegistrationStatus(UNDECLARED.format("1st"), f"{declared}; the e-process decides", is_declared=False)
    if registered is None:
        return RegistrationStatus()
    changed = list_changes(registered, now)
    if changed:
        note = f"not as registered ({'; '.join(changed)}); no verdict had been printed before the change"
        return RegistrationStatus("", note)
    return RegistrationStatus(AS_REGISTERED, f"registered as {registered.digest} before any verdict was printed")


def _list_earlier_looks(ledger: Ledger, now: Declaration, results: str) -> Iterator[Look]:
    """Yield the looks before this verdict was first printed, so that printing it again says the same."""
    for look in _read_looks(ledger):
        if (look.declaration, look.results) == (now, results):
            return
        if look.is_look:
            yield look


def _compare_names(what: str, before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    parts = [f"+ {name}" for name in now if name not in before]
    parts += [f"− {name}" for name in before if name not in now]
    parts += [f"{name} changed" for name in now if before.get(name, now[name]) != now[name]]
    if parts:
        yield f"{what} {', '.join(parts)}"


def _show_looks(looks: Sequence[int] | str | None) -> str:
    if looks is None:
        return "none"
    return looks if isinstance(looks, str) else ", ".join(map(str, looks))


def _show_number(number: float | None) -> str:
    return "none" if number is None else f"{number:g}"


def _ordinal(number: int) -> str:
    teens = 10 < number % 100 < 20
    return f"{number}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def _plain(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _digest(value: Any) -> str:
    return hashlib.sha256(_plain(value).encode()).hexdigest()[:16]
