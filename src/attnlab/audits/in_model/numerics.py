"""Numerics of a model: are its answers numbers, also where a sequence of the batch is nothing but padding?"""

from __future__ import annotations

import torch

from ..check import check
from ..finding import Finding, FindingPart, worst
from .subject import ModelSubject

NAME = "numerics"


@check(NAME, kind="numerics", on="model")
def numerics(subject: ModelSubject) -> Finding:
    """Look for answers that are not finite."""
    tokens = subject.tokens(2)
    mask = torch.ones_like(tokens)
    mask[1] = 0
    with torch.no_grad(), subject.mode(False):
        plain, beside = subject.answers(tokens), subject.answers(tokens, mask)
    parts = (
        FindingPart("answers that are not finite", float((~plain.isfinite()).sum()), 0.0),
        FindingPart("beside a sequence of padding alone", float((~beside[0].isfinite()).sum()), 0.0),
        FindingPart("of a sequence of padding alone", float((~beside[1].isfinite()).sum())),
    )
    bad = worst(parts)
    said = "Every answer is a finite number, also beside a sequence that is nothing but padding."
    if not bad.passed:
        said = f"{bad.figure:.0f} numbers are not finite: {bad.name}."
    elif parts[2].figure:
        said += " The answers of that sequence itself are not: keep it out of means."
    where = "" if bad.passed else subject.where("rows that see nothing")
    return Finding(NAME, bad.passed, bad.figure, bad.bound, said, where, parts=parts)
