"""Argmax in place of softmax: the value of the best key, and a gradient of zero, so that nothing learns from it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from attnlab.charts import Spec

from . import pictures
from .focus import misplaced
from .problem import ARGMAX, SOFTMAX, ConstructionProblem, Numbers, read_problem, read_vector
from .words import name_key, short


@dataclass(frozen=True, eq=False)
class ArgmaxResult:
    """What argmax attention makes of a query, with softmax's weights, output and gradient beside it."""

    problem: ConstructionProblem
    query: Tensor
    index: int
    """The selected key; the first of several with the largest score."""
    is_tie: bool
    """Whether another key has the largest score too."""
    weights: Tensor
    output: Tensor
    """The selected value."""
    gradient: Tensor
    """∂output/∂query [e d], by autograd through the kernel: zeros."""
    softmax_weights: Tensor
    softmax_output: Tensor
    softmax_gradient: Tensor
    """∂output/∂query [e d] of softmax."""

    @property
    def error(self) -> float:
        """The share of the weight that softmax puts elsewhere."""
        return misplaced(self.softmax_weights, self.weights)

    def figure(self) -> Spec:
        """Draw both kinds of weights, and how they change as the query moves towards the next best key."""
        return pictures.draw_argmax(self)

    def __str__(self) -> str:
        tie = " (the first of several that score alike)" if self.is_tie else ""
        none, size = (float(torch.linalg.matrix_norm(one)) for one in (self.gradient, self.softmax_gradient))
        return (
            f"argmax returns the value of {name_key(self.index)}{tie}, softmax gives it "
            f"{short(float(self.softmax_weights[self.index]))} of the weight. The gradient with respect to the "
            f"query has norm {short(none)} for argmax and {short(size)} for softmax."
        )


def argmax(keys: Numbers, query: Numbers, values: Numbers | None = None, *, scale: float | None = None) -> ArgmaxResult:
    """Return the value that argmax attention selects, and its zero gradient beside softmax's.

    keys, values and scale are those of `select`.
    """
    problem = read_problem(keys, values, scale)
    q = read_vector("query", query, problem.keys.shape[1])
    weights = problem.weights(q, ARGMAX)
    scores = problem.scores(q)
    return ArgmaxResult(
        problem=problem,
        query=q,
        index=int(weights.argmax()),
        is_tie=int((scores == scores.max()).sum()) > 1,
        weights=weights,
        output=problem.output(q, ARGMAX),
        gradient=_gradient(problem, q, ARGMAX),
        softmax_weights=problem.weights(q),
        softmax_output=problem.output(q),
        softmax_gradient=_gradient(problem, q, SOFTMAX),
    )


def _gradient(problem: ConstructionProblem, query: Tensor, mechanism: str) -> Tensor:
    gradient = torch.autograd.functional.jacobian(lambda q: problem.output(q, mechanism), query)
    assert isinstance(gradient, Tensor)
    return gradient
