"""How the arms of one phase and size were made comparable: the condition of their verdicts, and notes on it."""

from collections.abc import Iterator
from dataclasses import dataclass

from attnlab.statistics import Comparison
from attnlab.statistics.formatting import signed

from ..file.design import Design, Phase
from ..file.match_consistency import BY_CONFIG
from ..file.overrides import apply_settings
from ..plan.matching import Matching
from .search_outcome import SearchOutcome

AT_SHARED, AT_EQUAL = "AT SHARED SETTINGS", "AT EQUAL {}"


@dataclass(frozen=True)
class Fairness:
    """What was made equal in one phase and size of a study, and what was tuned."""

    study: Design
    phase: Phase
    size: str
    outcome: SearchOutcome
    matching: Matching

    @property
    def has_own_shapes(self) -> bool:
        """Whether weights may have another shape in each arm."""
        return self.study.match in BY_CONFIG

    def describe(self, arm: str) -> str:
        """Return the condition of a verdict; empty if the arm's settings differ and nothing was tuned."""
        equal = "" if self.study.match == "steps" else AT_EQUAL.format(self.study.match.upper())
        tuned = self.outcome.describe(self.study.baseline) or (AT_SHARED if self._has_same_settings(arm) else "")
        return ", ".join(filter(None, (equal, tuned)))

    def _has_same_settings(self, arm: str) -> bool:
        arms = [self.study.arms[name] for name in (self.study.baseline, arm)]
        phases = [apply_settings(self.phase, one) for one in arms]
        return phases[0] == phases[1] and arms[0].config == arms[1].config

    def list_notes(self, arm: str, comparison: Comparison | None) -> Iterator[str]:
        """Yield what was matched, what was tuned, and for the baseline against itself how far it differs."""
        if not self.study.is_aa(arm):
            yield from self.matching.describe((self.phase.name, self.size, arm), self.study.baseline)
        yield from self.outcome.list_notes((self.study.baseline, arm))
        if self.study.is_aa(arm) and comparison is not None:
            low, high = map(signed, comparison.interval)
            numbers = f"{signed(comparison.difference)}{comparison.question.unit} [{low}, {high}]"
            if comparison.decision.is_difference:
                yield (
                    f"the baseline differs from itself: {numbers} under other seeds. Of 100 studies about 5 show "
                    "this by chance; otherwise the runs of an arm have something in common that the seeds do not vary"
                )
            else:
                yield f"the noise floor: the baseline differs from itself by {numbers} under other seeds"
