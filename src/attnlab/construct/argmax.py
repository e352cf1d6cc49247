"""Argmax instead of softmax: it returns the value of the best key, and its gradient is zero."""

from dataclasses import dataclass

import torch
from torch import Tensor

from attnlab.charts import Spec

from . import pictures
from .construction import Construction
from .focus import compute_error
from .problem import ARGMAX, SOFTMAX, ConstructionProblem, Numbers, read_problem, read_vector
from .words import name_key, short


@dataclass(frozen=True, eq=False, repr=False)
class ArgmaxResult(Construction):
    """The weights, output and gradient of argmax attention for a query, and those of softmax.

    index: the selected key, the first if several have the largest score (`is_tie`). output: its value.
    gradient: ∂output/∂query [e d], by autograd through the kernel: zeros for argmax.
    """

    problem: ConstructionProblem
    query: Tensor
    index: int
    is_tie: bool
    weights: Tensor
    output: Tensor
    gradient: Tensor
    softmax_weights: Tensor
    softmax_output: Tensor
    softmax_gradient: Tensor

    @property
    def error(self) -> float:
        """The share of the weight that softmax gives other keys."""
        return compute_error(self.softmax_weights, self.weights)

    def figure(self) -> Spec:
        """Draw both kinds of weights, and how they change as the query moves towards the next best key."""
        return pictures.draw_argmax(self)

    def __str__(self) -> str:
        tie = " (the first of several that score alike)" if self.is_tie else ""
        norm, softmax_norm = (float(torch.linalg.matrix_norm(x)) for x in (self.gradient, self.softmax_gradient))
        return (
            f"argmax returns the value of {name_key(self.index)}{tie}, softmax gives it "
            f"{short(float(self.softmax_weights[self.index]))} of the weight. The gradient with respect to the "
            f"query has norm {short(norm)} for argmax and {short(softmax_norm)} for softmax."
        )


def argmax(keys: Numbers, query: Numbers, values: Numbers | None = None, *, scale: float | None = None) -> ArgmaxResult:
    """Return the value that argmax attention selects, and its zero gradient, with those of softmax.

    keys, values and scale are those of `select`.
    """
    problem = read_problem(keys, values, scale)
    q = read_vector("query", query, problem.keys.shape[1])
    scores = problem.scores(q)
    hard, soft = _evaluate(problem, q, ARGMAX), _evaluate(problem, q, SOFTMAX)
    return ArgmaxResult(problem, q, int(hard[0].argmax()), int((scores == scores.max()).sum()) > 1, *hard, *soft)


def _evaluate(problem: ConstructionProblem, query: Tensor, mechanism: str) -> tuple[Tensor, Tensor, Tensor]:
    """Return the weights, the output and ∂output/∂query."""
    gradient = torch.autograd.functional.jacobian(lambda q: problem.output(q, mechanism), query)
    assert isinstance(gradient, Tensor)
    return problem.weights(query, mechanism), problem.output(query, mechanism), gradient
