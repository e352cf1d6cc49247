"""The registry of checks. A check is a function that takes a subject and returns a finding; `@check("name")` registers
one, a user's own as well as those of this package."""

import dataclasses
import math
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from attnlab.check_names import NAMES
from attnlab.errors import AttnlabError, RequestError

from .finding import Finding, FindingKind, FindingPart

SubjectKind = Literal["mechanism", "model"]
CheckFunction = Callable[[Any], Finding | None]


VOID = FindingPart(
    "learned parameters moved", math.nan, None, "void: moved parameters give numbers that are not finite"
)
"""The part of a finding that says that a check has seen initial values only."""


@dataclass(frozen=True)
class Check:
    """A registered check.

    is_slow: it runs only on request, with `train=True`. moves_parameters: learned parameters are moved away from their
    initial values while it runs.
    """

    name: str
    function: CheckFunction
    kind: FindingKind = "other"
    is_slow: bool = False
    moves_parameters: bool = False

    def __call__(self, subject: Any) -> Finding | None:
        """Run the check on a `Subject` or `ModelSubject`; None if it does not apply."""
        try:
            finding = self._run(subject)
        except AttnlabError:
            raise
        except Exception as error:
            # A stage, a model or a user's check may raise anything, and the other findings must not be lost.
            finding = _report_error(self.name, error)
        if finding is None:
            return None
        if not isinstance(finding, Finding):
            raise RequestError(f"check '{self.name}' must return a Finding, or None, not {type(finding).__name__}")
        if finding.name != self.name:
            raise RequestError(f"check '{self.name}' must return a Finding of its own name, not '{finding.name}'")
        return finding if self.kind == "other" else dataclasses.replace(finding, kind=self.kind)

    def _run(self, subject: Any) -> Finding | None:
        if not self.moves_parameters or not subject.has_parameters:
            return self.function(subject)
        with subject.moved() as moved:
            finding = self.function(moved)
        if not isinstance(finding, Finding) or moved.is_moved:
            return finding
        return dataclasses.replace(finding, parts=(*finding.parts, VOID))


def _report_error(name: str, error: Exception) -> Finding:
    message = (str(error).strip().splitlines() or ["no message"])[0]
    last = traceback.extract_tb(error.__traceback__)[-1]
    sentence = f"The check raised {type(error).__name__}: {message}."
    return Finding(name, False, math.nan, None, sentence, f"{Path(last.filename).name}, line {last.lineno}")


CHECKS: dict[SubjectKind, dict[str, Check]] = {"mechanism": {}, "model": {}}
"""Every check by its name."""


def check(
    name: str, *, on: SubjectKind = "mechanism", kind: FindingKind = "other", is_slow: bool = False,
    moves_parameters: bool = False,
) -> Callable[[CheckFunction], CheckFunction]:  # fmt: skip
    """Register a function as a check of mechanisms, or of models; every audit then runs it.

    The function takes a `Subject` (or a `ModelSubject`) and returns a `Finding` of this name, or None if it does not
    apply.
    kind: what it is about; a study neither trains nor compares an arm that fails a check of kind "leak".
    is_slow: run it only with `audit(train=True)`.
    moves_parameters: move learned parameters away from their initial values while it runs, since what a stage does may
    not show at them; a model gets its own values back.
    """
    if not isinstance(name, str) or not name.strip():
        raise RequestError(f'@check("name") needs a name, not {name!r}')
    if on not in CHECKS:
        raise RequestError(f"a check is on 'mechanism' or on 'model', not {on!r}")
    if kind not in get_args(FindingKind):
        raise RequestError(f"a check has no kind {kind!r}; kinds: {', '.join(get_args(FindingKind))}")

    def register(function: CheckFunction) -> CheckFunction:
        known = CHECKS[on].get(name)
        if known is not None and _locate(known.function) != _locate(function):
            raise RequestError(f"a check named '{name}' exists already: {'.'.join(_locate(known.function))}")
        CHECKS[on][name] = Check(name, function, kind, is_slow, moves_parameters)
        return function

    return register


def _locate(function: CheckFunction) -> tuple[str, str]:
    """Return a function's module and name, so that a function that is defined again replaces itself."""
    return getattr(function, "__module__", "?"), getattr(function, "__qualname__", "?")


def known_checks(on: SubjectKind) -> Mapping[str, Check]:
    """Return the checks of mechanisms or of models in the order in which they run, a user's own last."""
    first = {name: CHECKS[on][name] for name in NAMES[on] if name in CHECKS[on]}
    return {**first, **CHECKS[on]}
