"""Positions of a model whose mechanism has a scheme of its own: nothing of the model's scheme may be left.

The model is given other positions, which only its own scheme reads. With `nope` and no causal mask, a model that reads
its tokens in another order gives the same outputs in that order.
"""

import torch

from attnlab.install import mechanism_of

from ..check import check
from ..finding import Finding, FindingPart, judge_parts
from ..subject import peak
from .subject import ModelSubject

NAME = "own positions"


@check(NAME, kind="positions", on="model", moves_parameters=True)
def own_positions(subject: ModelSubject) -> Finding | None:
    """Change the positions that the model is given, and the order of its tokens."""
    mechanism = mechanism_of(subject.model)
    if mechanism is None or "position_ids" not in subject.arguments:
        return None
    # `install` refuses a line that replaces the positions of the model in some layers only.
    if mechanism.distinct[0].positions.is_of_model:
        return None
    subject = subject.precise
    tokens = subject.tokens(2)
    order = torch.randperm(tokens.shape[1], generator=torch.Generator().manual_seed(3))
    with torch.no_grad(), subject.mode(False):
        # With a mask, transformers does not take positions that fall for the borders of packed sequences.
        mask = torch.ones_like(tokens)
        whole = subject.outputs(tokens, mask)
        moved = subject.outputs(tokens, mask, position_ids=order.expand(tokens.shape))
        parts = [FindingPart("other positions", peak(moved - whole), 0.0)]
        if not subject.causal and not mechanism.find_stages_needing("positions"):
            shuffled = subject.outputs(tokens[:, order], mask)
            parts.append(FindingPart("another order", peak(shuffled - whole[:, order]), subject.noise(whole)))
    ways = " and not on the order of its tokens" if len(parts) > 1 else ""
    return judge_parts(
        NAME, parts,
        passed=f"Outputs do not depend on the positions that the model is given{ways}: its own scheme is removed.",
        failed=lambda bad: (
            f"Something of the model's own positions is left: {bad.name} change its outputs by {bad.figure:.2g} "
            f"(allowed {bad.bound:.2g})."
        ),
        where=lambda _: subject.locate_fault("its position embeddings or rotation"),
    )  # fmt: skip
