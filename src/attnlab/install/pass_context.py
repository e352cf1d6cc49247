"""What one forward pass gathers across the layers of a model: the first layer's values, and terms for the loss."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from attnlab.errors import InstallError

PASS_CONTEXT = "_attnlab_pass"

REENTRANT = (
    "{what} cannot pass through reentrant gradient checkpointing, which cuts it off from its gradient; use "
    "model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={{'use_reentrant': False}})"
)


class PassContext:
    """Opened and closed by the model's own forward; nested models (a head and its body) share one pass."""

    def __init__(self, needs_first: bool) -> None:
        self.needs_first = needs_first
        self.depth = 0
        self.opener: int | None = None
        self.has_gradient = False
        self.firsts: dict[str, Tensor] = {}
        self.terms: list[Tensor] = []
        self.total: Tensor | None = None

    def __getstate__(self) -> dict[str, object]:
        """Leave out what belongs to a pass: its graph can be neither copied nor pickled."""
        return {"needs_first": self.needs_first}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["needs_first"])  # type: ignore[misc]

    def begin(self, model: nn.Module, args: Any) -> None:
        """Start a pass: a hook before the model's forward."""
        if self.opener == id(model):
            self.depth = 0  # the last pass was interrupted, and no hook has told
        if self.depth == 0:
            self.opener = id(model)
            self.has_gradient = torch.is_grad_enabled()
            self.firsts, self.terms, self.total = {}, [], None
            if self.needs_first and model.training and getattr(model, "is_gradient_checkpointing", False):
                raise InstallError(
                    "a stage that mixes in the first layer's values (value_residual) does not work under gradient "
                    "checkpointing: a layer computed again would not know whose first values to take; turn it off "
                    "with model.gradient_checkpointing_disable()"
                )
        self.depth += 1

    def end(self, model: nn.Module, args: Any, output: Any) -> Any:
        """End a pass: a hook after the model's forward that adds the terms to its loss while training."""
        self.depth = max(0, self.depth - 1)  # a pass that was refused at its beginning ends too
        if self.depth:
            return None
        self.opener = None
        self.total = sum(self.terms[1:], self.terms[0]) if self.terms else None
        self.firsts, self.terms = {}, []
        return _add_to_loss(output, self.total) if model.training and self.total is not None else None

    def first(self, stack: str, values: Tensor) -> Tensor:
        """Return the values of the first layer of a stack: these, where they are the first of the pass."""
        if self.depth == 0:
            raise InstallError(
                "a layer was called by itself, but its mechanism mixes in the first layer's values; call the model"
            )
        self.check_gradient("the first layer's values")
        return self.firsts.setdefault(stack, values)

    def add(self, term: Tensor) -> None:
        """Take a term for the loss; one from a layer that checkpointing computes again is there already."""
        if self.depth:
            self.check_gradient("the output penalty")
            self.terms.append(term)

    def check_gradient(self, what: str) -> None:
        """Refuse a checkpoint that hides the gradient from what leaves it sideways."""
        if self.has_gradient and not torch.is_grad_enabled():
            raise InstallError(REENTRANT.format(what=what))


def get_pass_context(attention: nn.Module) -> PassContext:
    """Return the context an attention module reports to.

    It is kept beside the layer: a library that trains a copy of the layer (peft) must not copy the context with it.
    """
    context: PassContext = vars(attention)[PASS_CONTEXT]
    return context


def _add_to_loss(output: Any, term: Tensor) -> Any:
    """Add a term to the loss of a model's output, where it has one."""
    if isinstance(output, tuple):
        has_loss = bool(output) and isinstance(output[0], Tensor) and output[0].dim() == 0
        return (output[0] + term, *output[1:]) if has_loss else output
    if getattr(output, "loss", None) is not None:
        output["loss"] = output["loss"] + term.to(output["loss"].device)
    return output
