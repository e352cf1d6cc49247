"""What a study declared before its results were seen, and whether a verdict is as declared.

`attnlab register` writes a declaration into the ledger; without it the first printed verdict becomes one. Every printed
verdict is an event, so that later ones can report what changed since: more seeds, other arms, another threshold. An
undeclared verdict is judged by the e-process, which stays valid under any stopping rule; testing anew after each of 5
to 20 seeds would have 18.5 % false positives.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import takewhile
from typing import Any, Self

from attnlab.errors import StudyError
from attnlab.statistics.verdict import MIN_SEEDS
from attnlab.training.spec import Section, Watching

from ..file.design import Arm, Design, Phase
from ..ledger.database import Ledger

REGISTRATION, VERDICT = "registration", "verdict"
"""Names of these events in the ledger."""
AS_REGISTERED = "AS REGISTERED"
CHANGED = "CHANGED AFTER LOOKING ({})"
UNDECLARED = "UNDECLARED LOOK ({})"

NOT_DECLARED = ("smallest", "target", *Watching.model_fields)
"""Settings of a phase that do not change results, or are declared separately."""
LATER = ("search", "trend", "horizons", "conclusion", "match", "targets")
"""What a declaration has only if the study asks for it."""


@dataclass(frozen=True)
class Declaration:
    """What decides a study's verdicts: arms, seeds, looks, thresholds, and the comparisons that are one family.

    arms: each arm's mechanism and settings. smallest: by phase; other phases are not compared. sizes, training: a hash
    of the settings of each size and phase.
    """

    baseline: str
    arms: Mapping[str, str]
    seeds: Sequence[int]
    looks: Sequence[int] | str | None
    smallest: Mapping[str, float]
    sizes: Mapping[str, str]
    training: Mapping[str, str]
    search: str = ""
    """A hash of the search; empty without one."""
    trend: str = ""
    horizons: Sequence[int] = ()
    conclusion: str = ""
    """What is asked about several sizes, horizons and phases: hashes, and numbers of steps; empty without."""
    match: str = ""
    """What the arms are equal in; empty for steps."""
    targets: Mapping[str, float] = field(default_factory=dict)
    """By phase."""

    @classmethod
    def of(cls, design: Design) -> Self:
        """Return what a design declares."""
        return cls(
            design.baseline,
            {name: _describe_arm(arm) for name, arm in design.arms.items()},
            list(design.seeds),
            design.looks,
            {phase.name: phase.smallest for phase in design.phases if phase.smallest is not None},
            {name: digest(size.model_dump(mode="json")) for name, size in design.sizes.items()},
            {phase.name: _digest_phase(phase) for phase in design.phases},
            _digest_part(design.search),
            _digest_part(design.trend),
            list(design.horizons or ()),
            _digest_part(design.conclusion),
            "" if design.match == "steps" else design.match,
            {phase.name: phase.target for phase in design.phases if phase.target is not None},
        )

    @property
    def digest(self) -> str:
        """A hash to publish."""
        # Without what came later, as it was published before there was such a thing.
        return digest({name: value for name, value in asdict(self).items() if value or name not in LATER})

    def allows_seeds(self, seeds: Sequence[int]) -> bool:
        """Return whether a look at these seeds was declared: all of them at once, or as many as a declared look has."""
        if self.looks == "open":
            return True
        if isinstance(self.looks, str) or self.looks is None:
            return list(seeds) == list(self.seeds)
        shared = min(len(seeds), len(self.seeds))
        return len(seeds) in self.looks and list(seeds[:shared]) == list(self.seeds[:shared])


@dataclass(frozen=True)
class RegistrationStatus:
    """Whether a verdict is as declared; if not, the e-process decides.

    words: AS REGISTERED, CHANGED AFTER LOOKING (…), UNDECLARED LOOK (2nd), or empty for a first verdict.
    """

    words: str = ""
    note: str = ""
    is_declared: bool = True


def _digest_phase(phase: Phase) -> str:
    content = phase.model_dump(mode="json", exclude=set(NOT_DECLARED))
    if content["figure_at"] == "last":  # as in ledgers from before there was a choice
        del content["figure_at"]
    # As in ledgers from before there were trackers, whose phases must not seem to be changed.
    return digest({**content, "has_tensorboard": False})


def _digest_part(part: Section | None) -> str:
    """Return a hash of a part of a study file; empty without it."""
    return "" if part is None else digest(part.model_dump(mode="json"))


def _describe_arm(arm: Arm) -> str:
    content = arm.model_dump(mode="json")
    if not content["over"]:  # as in ledgers from before there was a search
        del content["over"]
    return json.dumps(content, sort_keys=True)


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
        before, after = (one.smallest.get(phase) for one in (declared, now))
        if before != after:
            shown = ("none" if number is None else f"{number:g}" for number in (before, after))
            changes.append(f"smallest of {phase} {' → '.join(shown)}")
    for part in LATER:
        if getattr(declared, part) != getattr(now, part):
            changes.append(f"the {part}")
    known = {**now.training, **declared.training}
    return changes + [f"training of {phase}" for phase, hash in now.training.items() if known[phase] != hash]


def check_registration(ledger: Ledger, design: Design, results: str) -> RegistrationStatus:
    """Compare a verdict on these results with what was declared before it."""
    now = Declaration.of(design)
    # Looks before this verdict was first printed, so that it can be printed again unchanged.
    looks = takewhile(lambda look: look[:2] != (now, results), _read_looks(ledger))
    earlier = [declaration for declaration, _, is_look in looks if is_look]
    events = ledger.events(REGISTRATION)
    registered = Declaration(**json.loads(events[-1])) if events else None
    if not earlier:
        return _check_first_verdict(registered, now)
    declared = registered or earlier[0]
    changed = list_changes(declared, now)
    seen = list(dict.fromkeys(tuple(declaration.seeds) for declaration in earlier))
    words = [CHANGED.format("; ".join(changed))] if changed else []
    if tuple(now.seeds) not in seen and not declared.allows_seeds(now.seeds):
        words.append(UNDECLARED.format(_ordinal(len(seen) + 1)))
    if not words:
        return RegistrationStatus(AS_REGISTERED, "nothing that affects the verdicts was changed since it was declared")
    note = (
        "a verdict had been printed before this was changed; the e-process decides, which stays valid however often "
        "one looks, and needs more seeds"
    )
    return RegistrationStatus(", ".join(words), note, is_declared=False)


def register(ledger: Ledger, design: Design) -> Declaration:
    """Write what a study declares into its ledger; an error after a verdict was printed."""
    if any(is_look for _, _, is_look in _read_looks(ledger)):
        raise StudyError(
            f"{ledger.path.parent} has printed verdicts already, so that nothing can be registered there beforehand; "
            "register the study in another folder, before it is run"
        )
    declaration = Declaration.of(design)
    ledger.add_event_if_new(REGISTRATION, json.dumps(asdict(declaration)))
    return declaration


def note_verdict(ledger: Ledger, design: Design, results: str, is_look: bool) -> None:
    """Write a printed verdict into the ledger, unless it is there already.

    results: a hash of the runs and their figures. is_look: whether a comparison had enough seeds for a verdict.
    """
    declaration = Declaration.of(design)
    if not any(look[:2] == (declaration, results) for look in _read_looks(ledger)):
        content = {"declaration": asdict(declaration), "results": results, "is_look": is_look}
        ledger.add_event(VERDICT, json.dumps(content))


def digest(value: Any) -> str:
    """Return a short hash of plain values."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def _read_looks(ledger: Ledger) -> list[tuple[Declaration, str, bool]]:
    looks = (json.loads(event) for event in ledger.events(VERDICT))
    return [(Declaration(**look["declaration"]), look["results"], look["is_look"]) for look in looks]


def _check_first_verdict(registered: Declaration | None, now: Declaration) -> RegistrationStatus:
    # No verdict had been printed, so no change can depend on results.
    is_possible = now.looks is None or replace(now, seeds=now.seeds[:1]).allows_seeds(now.seeds)
    if not is_possible and len(now.seeds) >= MIN_SEEDS:
        declared = f"{len(now.seeds)} seeds are none of the declared looks ({_show_looks(now.looks)})"
        return RegistrationStatus(UNDECLARED.format("1st"), f"{declared}; the e-process decides", is_declared=False)
    if registered is None:
        return RegistrationStatus()
    if changed := list_changes(registered, now):
        note = f"not as registered ({'; '.join(changed)}); no verdict had been printed before the change"
        return RegistrationStatus("", note)
    return RegistrationStatus(AS_REGISTERED, f"registered as {registered.digest} before any verdict was printed")


def _compare_names(what: str, before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    parts = [f"+ {name}" for name in now if name not in before]
    parts += [f"− {name}" for name in before if name not in now]
    parts += [f"{name} changed" for name in now if before.get(name, now[name]) != now[name]]
    if parts:
        yield f"{what} {', '.join(parts)}"


def _show_looks(looks: Sequence[int] | str | None) -> str:
    return "none" if looks is None else looks if isinstance(looks, str) else ", ".join(map(str, looks))


def _ordinal(number: int) -> str:
    teens = 10 < number % 100 < 20
    return f"{number}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"
