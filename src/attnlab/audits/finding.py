"""The answers of an audit: measured parts, the finding they make together, and all findings about one subject."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from attnlab.charts import Spec
from attnlab.check_names import match_name
from attnlab.kernels.rounding import show_residual
from attnlab.notebook import Facts, Showable

FindingKind = Literal[
    "leak", "prefix", "padding", "gradients", "numerics", "equivalences", "magnitude", "weights", "value_path", "cost",
    "random_tokens", "positions", "other",
]  # fmt: skip
"""What a check is about, for programs; a user's own check is "other" unless its decorator names a kind."""


@dataclass(frozen=True)
class FindingPart:
    """One measured number of a finding, and the kernel it was measured with. Without a bound it is only reported."""

    name: str
    figure: float
    bound: float | None = None
    note: str = ""
    kernel: str = ""

    @property
    def passed(self) -> bool:
        """Whether the figure is within its bound; NaN never is."""
        return self.bound is None or self.figure <= self.bound

    @property
    def situation(self) -> str:
        """The name without the kernel, which is the same for every kernel."""
        return self.name.replace(f", kernel {self.kernel}", "", 1)

    @property
    def excess(self) -> float:
        """How far the figure is above its bound; the worst part is the one with the largest excess."""
        if self.bound is None:
            return -math.inf
        return math.inf if math.isnan(self.figure) else self.figure - self.bound


@dataclass(frozen=True, repr=False)
class Finding(Showable):
    """The result of one check: passed or not, the measured figure, its bound, and one sentence why.

    where: where to look, as a stage, a kernel or a pair of positions. judged: False if the check only reports.
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

    def facts(self) -> Facts:
        """Return the sentence, and the measured parts."""
        rows = [("ok" if part.passed else "NO", part.name, show_figure(part), show(part.bound)) for part in self.parts]
        return Facts(
            f"{self.name}: {self.verdict}", self.sentence, ("", "measured", "figure", "bound"), rows, self.passed,
            [number for number, part in enumerate(self.parts) if not part.passed],
        )  # fmt: skip

    def record(self) -> dict[str, Any]:
        """Return the finding as plain values, for JSON."""
        parts = [{**asdict(part), "passed": part.passed} for part in self.parts]
        record = {"name": self.name, "kind": self.kind, "verdict": self.verdict, **asdict(self), "parts": parts}
        return {name: _make_plain(value) for name, value in record.items()}


def _make_plain(value: Any) -> Any:
    """Return a value as JSON can hold it: infinities and NaN become text."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): _make_plain(item) for name, item in value.items()}
    return [_make_plain(item) for item in value] if isinstance(value, list | tuple) else value


def find_worst(parts: Iterable[FindingPart]) -> FindingPart:
    """Return the part that is furthest above its bound, or closest below it."""
    return max(parts, key=lambda part: part.excess)


def judge_parts(
    name: str, parts: Iterable[FindingPart], *, passed: str, failed: Callable[[FindingPart], str],
    where: Callable[[FindingPart], str], data: Mapping[str, Any] | None = None,
) -> Finding:  # fmt: skip
    """Make the finding of a check from its parts, which passes if its worst part does.

    passed: the sentence if all parts pass. failed, where: get the worst part and return the sentence and where to look.
    """
    parts = tuple(parts)
    worst = find_worst(parts)
    sentence, place = (passed, "") if worst.passed else (failed(worst), where(worst))
    return Finding(name, worst.passed, worst.figure, worst.bound, sentence, place, parts=parts, data=data or {})


def show(figure: float | None) -> str:
    """Write a figure with three digits."""
    if figure is None:
        return "–"
    return "0" if figure == 0 else f"{figure:.3g}".replace("-", "−")


def show_figure(finding: "Finding | FindingPart") -> str:
    """Write the figure of a finding; one that is rounding, and within its bound, is 0."""
    figure = finding.figure
    if figure is None or finding.bound is None or not finding.passed:
        return show(figure)
    return show_residual(figure)


class Findings(Mapping[str, Finding]):
    """Findings in the order in which they were made, by name or by a unique substring of a name."""

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


@dataclass(frozen=True, repr=False)
class Audit(Showable):
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
        """Whether the audit was with a causal mask, without, or both, in words."""
        return {None: "causal and not causal", True: "causal", False: "not causal"}[self.causal]

    def record(self) -> dict[str, Any]:
        """Return all findings as plain values, for JSON."""
        findings = {name: finding.record() for name, finding in self.findings.items()}
        return {
            "subject": self.subject, "causal": self.causal, "passed": self.passed, "seconds": round(self.seconds, 2),
            "findings": findings,
        }  # fmt: skip

    def facts(self) -> Facts:
        """Return a row for each finding."""
        rows = [
            (finding.verdict, finding.name, show_figure(finding), show(finding.bound), finding.sentence)
            for finding in self.findings.values()
        ]
        failed = f": {', '.join(finding.name for finding in self.failed)}" if self.failed else ""
        verdict = f"{self.ways}: {'FAILED' if failed else 'passed'}{failed}"
        strong = [number for number, finding in enumerate(self.findings.values()) if not finding.passed]
        columns = ("", "check", "figure", "bound", "")
        return Facts(self.subject, verdict, columns, rows, self.passed, strong)

    def figure(self) -> Spec:
        """Draw the findings, as a Vega-Lite spec for `charts.save`."""
        from .picture import draw

        return draw(self)

    def __str__(self) -> str:
        lines = [f"{self.subject}, {self.ways}: {'passed' if self.passed else 'FAILED'}"]
        for finding in self.findings.values():
            numbers = "" if finding.bound is None else f" ({show_figure(finding)}, bound {show(finding.bound)})"
            lines.append(f"  {finding.verdict:8} {finding.name}{numbers}: {finding.sentence}")
            if not finding.passed and finding.where:
                lines.append(f"           cause: {finding.where}")
        return "\n".join(lines)
