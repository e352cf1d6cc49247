"""Numerics of a model: are its outputs finite, also if a sequence of the batch is only padding?"""

import torch

from ..check import check
from ..finding import Finding, FindingPart, judge_parts
from .subject import ModelSubject

NAME = "numerics"


@check(NAME, kind="numerics", on="model", moves_parameters=True)
def numerics(subject: ModelSubject) -> Finding:
    """Count the outputs that are not finite."""
    tokens = subject.tokens(2)
    mask = torch.ones_like(tokens)
    mask[1] = 0
    with torch.no_grad(), subject.mode(False):
        plain, padded = subject.outputs(tokens), subject.outputs(tokens, mask)
    parts = (
        FindingPart("outputs that are not finite", float((~plain.isfinite()).sum()), 0.0),
        FindingPart("beside a sequence of padding alone", float((~padded[0].isfinite()).sum()), 0.0),
        FindingPart("of a sequence of padding alone", float((~padded[1].isfinite()).sum())),
    )
    note = " The outputs of that sequence itself are not: exclude it from means." if parts[2].figure else ""
    return judge_parts(
        NAME, parts,
        passed=f"Every output is a finite number, also beside a sequence that is only padding.{note}",
        failed=lambda bad: f"{bad.figure:.0f} numbers are not finite: {bad.name}.",
        where=lambda _: subject.locate_fault("rows without a visible key"),
    )  # fmt: skip
