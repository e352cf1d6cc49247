"""A check: a function that puts one question to a subject and answers with a finding. `@check("name")` adds one,
a user's own as well as those here."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from attnlab.errors import AttnlabError, RequestError

from .finding import Finding, FindingKind

if TYPE_CHECKING:
    from .in_model import ModelSubject
    from .subject import Subject

Kind = Literal["mechanism", "model"]
Question = Callable[[Any], Finding | None]


@dataclass(frozen=True)
class Check:
    """A question by its name. `asked` says whether it is put only on request, because it takes long."""

    name: str
    question: Question
    asked: bool = False
    kind: FindingKind = "other"

    def __call__(self, subject: Subject | ModelSubject) -> Finding | None:
        """Put the question; None where it does not apply."""
        try:
            finding = self.question(subject)
        except AttnlabError:
            raise
        except Exception as error:
            # Whatever a stage, a model or a user's own check raises: the other findings are not lost for it.
            return replace(unanswered(self.name, error), kind=self.kind)
        if finding is not None and not isinstance(finding, Finding):
            raise RequestError(f"check '{self.name}' must return a Finding, or None, not {type(finding).__name__}")
        if finding is not None and finding.name != self.name:
            raise RequestError(f"check '{self.name}' must return a Finding of its own name, not '{finding.name}'")
        return finding and replace(finding, kind=self.kind)


def unanswered(name: str, error: Exception) -> Finding:
    """Return what is found where a question could not be put: what was raised, and where."""
    said = (str(error).strip().splitlines() or ["without a word"])[0]
    last = traceback.extract_tb(error.__traceback__)[-1]
    return Finding(
        name, False, math.nan, None, f"The question could not be put: {type(error).__name__}: {said}.",
        f"{Path(last.filename).name}, line {last.lineno}",
    )  # fmt: skip


CHECKS: dict[Kind, dict[str, Check]] = {"mechanism": {}, "model": {}}
"""Every check by its name."""

ORDER = (
    "causal leak", "prefix consistency", "padding and batch invariance", "gradient flow", "numerics", "equivalences",
    "magnitude against length", "weights", "value path", "cost", "i.i.d. test",
)  # fmt: skip
"""What is asked first: what makes a comparison worthless; then what spoils a run; then what is good to know."""


def check(
    name: str, *, on: Kind = "mechanism", asked: bool = False, kind: FindingKind = "other"
) -> Callable[[Question], Question]:  # fmt: skip
    """Register a function as a check of mechanisms, or of models; it is then put in every audit.

    The function takes a `Subject` (or a `ModelSubject`) and returns a `Finding` of this name, or None where its
    question does not apply. asked: put it only where `audit` is told to by `train=True`.
    kind: what it is about; a study neither trains nor compares an arm that fails a check of kind "leak".
    """
    if not isinstance(name, str) or not name.strip():
        raise RequestError(f'@check("name") needs a name, not {name!r}')
    if on not in CHECKS:
        raise RequestError(f"a check is on 'mechanism' or on 'model', not {on!r}")

    if kind not in get_args(FindingKind):
        raise RequestError(f"a check has no kind {kind!r}; kinds: {', '.join(get_args(FindingKind))}")

    def register(question: Question) -> Question:
        known = CHECKS[on].get(name)
        if known is not None and origin(known.question) != origin(question):
            raise RequestError(f"a check named '{name}' exists already: {'.'.join(origin(known.question))}")
        CHECKS[on][name] = Check(name, question, asked, kind)
        return question

    return register


def origin(question: Question) -> tuple[str, str]:
    """Say where a function stands, by which the same one defined again is known."""
    return getattr(question, "__module__", "?"), getattr(question, "__qualname__", "?")


def known_checks(on: Kind) -> Mapping[str, Check]:
    """Return the checks of one kind in the order in which they are put, a user's own last."""
    first = {name: CHECKS[on][name] for name in ORDER if name in CHECKS[on]}
    return {**first, **CHECKS[on]}
