"""What an audit answers: parts that were measured, the finding they make together, and the record of all findings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from attnlab.charts import Spec
from attnlab.errors import RequestError, closest

FindingKind = Literal[
    "leak", "prefix", "padding", "gradients", "numerics", "equivalences", "magnitude", "weights", "value_path", "cost",
    "random_tokens", "other",
]  # fmt: skip
"""What a check is about, for programs; a user's own check is "other" unless its decorator names a kind."""


@dataclass(frozen=True)
class FindingPart:
    """One measured number of a finding, and the kernel it belongs to. Without a bound it is only reported."""

    name: str
    figure: float
    bound: float | None = None
    note: str = ""
    kernel: str = ""

    @property
    def passed(self) -> bool:
        """Whether the figure keeps its bound; what is not a number never does."""
        return self.bound is None or self.figure <= self.bound

    @property
    def situation(self) -> str:
        """What was measured, whichever kernel it was."""
        return self.name.replace(f", {self.kernel}", "", 1)

    @property
    def excess(self) -> float:
        """How far the figure is beyond its bound, by which the worst part is found."""
        if self.bound is None:
            return -math.inf
        return math.inf if math.isnan(self.figure) else self.figure - self.bound


@dataclass(frozen=True)
class Finding:
    """The answer to one check: passed or not, by which figure against which bound, and why in one sentence.

    where: where to look, as a stage, a kernel or a pair of positions. judged: False where the check only reports.
    data: numbers for a picture or a program.
    """

    name: str
    passed: bool
    figure: float
    bound: float | None
    sentence: str
    where: str = ""
    judged: bool = True
    parts: tuple[FindingPart, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    kind: FindingKind = "other"

    @property
    def verdict(self) -> str:
        """One word: passed, FAILED, or reported."""
        return ("passed" if self.judged else "reported") if self.passed else "FAILED"

    def record(self) -> dict[str, Any]:
        """Return all of it as plain values, for JSON."""
        return {
            "name": self.name,
            "kind": self.kind,
            "verdict": self.verdict,
            "passed": self.passed,
            "judged": self.judged,
            "figure": plain(self.figure),
            "bound": plain(self.bound),
            "sentence": self.sentence,
            "where": self.where,
            "parts": [
                {
                    "name": part.name,
                    "passed": part.passed,
                    "figure": plain(part.figure),
                    "bound": plain(part.bound),
                    "note": part.note,
                    "kernel": part.kernel,
                }
                for part in self.parts
            ],
            "data": {name: plain(value) for name, value in self.data.items()},
        }


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it: what is not finite becomes text."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def worst(parts: Iterable[FindingPart]) -> FindingPart:
    """Return the part that breaks its bound the most, or comes nearest to it."""
    return max(parts, key=lambda part: part.excess)


def show(figure: float | None) -> str:
    """Write a figure with three digits."""
    if figure is None:
        return "–"
    return "0" if figure == 0 else f"{figure:.3g}".replace("-", "−")


class Findings(Mapping[str, Finding]):
    """Findings by name, in the order they were made; any part of a name that fits one alone will do."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self._by_name = {finding.name: finding for finding in findings}

    def __getitem__(self, name: str) -> Finding:
        return self._by_name[match_name(name, self._by_name)]

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    def __repr__(self) -> str:
        return f"Findings({', '.join(f'{name}: {finding.verdict}' for name, finding in self.items())})"


def match_name(name: str, known: Iterable[str]) -> str:
    """Return the known name that is meant: the name itself, or the only one that holds it."""
    names = list(known)
    if name in names:
        return name
    asked = normalize_name(str(name))
    found = [other for other in names if asked and asked in normalize_name(other)]
    if len(found) == 1:
        return found[0]
    # One word of a name is what people write, and misspell.
    words = {word: other for other in names for word in other.split()}
    nearest = closest(str(name), [*names, *words])
    hint = nearest or f"; there are {', '.join(names)}"
    raise UnknownCheckError(
        f"'{name}' could be any of {', '.join(found)}" if found else f"no check is named '{name}'{hint}"
    )


def normalize_name(name: str) -> str:
    """Return a name's letters and digits alone, by which names are compared."""
    return "".join(character for character in name.lower() if character.isalnum())


class UnknownCheckError(RequestError, KeyError):
    """A check that there is not, or not the only one of that name."""

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True)
class Audit:
    """All findings about one mechanism or model."""

    subject: str
    causal: bool | None
    findings: Findings
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether no check failed."""
        return not self.failed

    @property
    def failed(self) -> tuple[Finding, ...]:
        """The findings that failed."""
        return tuple(finding for finding in self.findings.values() if not finding.passed)

    @property
    def ways(self) -> str:
        """Which causality was asked about, in words."""
        return {None: "causal and not causal", True: "causal", False: "not causal"}[self.causal]

    def record(self) -> dict[str, Any]:
        """Return all of it as plain values, for JSON."""
        return {
            "subject": self.subject,
            "causal": self.causal,
            "passed": self.passed,
            "seconds": round(self.seconds, 2),
            "findings": {name: finding.record() for name, finding in self.findings.items()},
        }

    def figure(self) -> Spec:
        """Draw the leak map and the growth curves, as a Vega-Lite spec for `charts.save`."""
        from .picture import draw

        return draw(self)

    def __str__(self) -> str:
        lines = [f"{self.subject}, {self.ways}: {'passed' if self.passed else 'FAILED'}"]
        for finding in self.findings.values():
            numbers = "" if finding.bound is None else f" ({show(finding.figure)}, bound {show(finding.bound)})"
            lines.append(f"  {finding.verdict:8} {finding.name}{numbers}: {finding.sentence}")
            if not finding.passed and finding.where:
                lines.append(f"           look at {finding.where}")
        return "\n".join(lines)
