"""Comparisons of a study that are decided as one family, at one look or at several."""

from collections.abc import Mapping
from dataclasses import replace

from attnlab.statistics import Comparison, conclude_family
from attnlab.statistics.comparison import conclude as conclude_comparison
from attnlab.statistics.families import Key
from attnlab.statistics.question import ALPHA, Looks

from ..file.design import Design
from .registration import RegistrationStatus


def choose_looks(study: Design, status: RegistrationStatus) -> Looks:
    """Return the looks that verdicts allow for: those that were declared, or "open" if this one was not."""
    if study.looks is None and status.is_declared:
        return None
    # With fewer seeds than the first look the declared test gives no verdict; the e-process takes any number.
    is_look = isinstance(study.looks, list) and len(study.seeds) in study.looks and status.is_declared
    return study.looks if is_look else "open"


def decide_family(
    study: Design, family: Mapping[Key, Comparison], status: RegistrationStatus
) -> dict[Key, Comparison]:  # fmt: skip
    """Decide comparisons as one family: by Holm, or each at alpha/m if there are several looks."""
    looks = choose_looks(study, status)
    if looks is None:
        return conclude_family(family)
    alpha = ALPHA / max(1, len(family))
    return {
        key: conclude_comparison(one.estimate, replace(one.question, alpha=alpha, looks=looks), one.data)
        for key, one in family.items()
    }
