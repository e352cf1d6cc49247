"""The state of one forward pass across the layers of a model: the first layer's values, the token ids, and terms for
the loss."""

from typing import Any

import torch
from torch import Tensor, nn

from attnlab.errors import InstallError
from attnlab.mechanisms import Value

PASS_CONTEXT = "_attnlab_pass"


class PassContext:
    """Opened and closed by hooks on the model's forward; nested models (a head and its body) share one pass."""

    def __init__(self, needs_first: bool, vocab_size: int | None = None) -> None:
        """vocab_size: the number of tokens that stages have rows for; None if no stage needs token ids."""
        self.needs_first, self.vocab_size = needs_first, vocab_size
        self.tokens: Tensor | None = None
        self.depth = 0
        self.opener: int | None = None
        self.has_gradient = False
        self.firsts: dict[str, Tensor] = {}
        self.terms: list[Tensor] = []
        self.total: Tensor | None = None

    def __getstate__(self) -> dict[str, object]:
        """Leave out the state of a pass, whose graph can be neither copied nor pickled."""
        return {"needs_first": self.needs_first, "vocab_size": self.vocab_size}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def begin(self, model: nn.Module, args: Any) -> None:
        """Start a pass: a hook before the model's forward."""
        if self.opener == id(model):
            self.depth = 0  # the last pass was interrupted before its closing hook
        if self.depth == 0:
            self.opener = id(model)
            self.has_gradient = torch.is_grad_enabled()
            self.firsts, self.tokens, self.terms, self.total = {}, None, [], None
            if self.needs_first and model.training and getattr(model, "is_gradient_checkpointing", False):
                raise InstallError(
                    "a stage that mixes in the first layer's values (value_residual) does not work under gradient "
                    "checkpointing: a layer computed again would not know the first values of its pass; turn it off "
                    "with model.gradient_checkpointing_disable()"
                )
            if self.vocab_size is not None and model.training and getattr(model, "is_gradient_checkpointing", False):
                raise InstallError(
                    "a stage that needs the token ids (value_embedding) does not work under gradient checkpointing: a "
                    "layer computed again would not know the tokens of its pass; turn it off with "
                    "model.gradient_checkpointing_disable()"
                )
        self.depth += 1

    def take_tokens(self, model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Take the token ids that the outermost model is called with: a hook after `begin`."""
        if self.depth != 1:
            return
        self.check_vocabulary(model)
        # Every model of transformers that takes token ids takes them first.
        tokens = kwargs.get("input_ids", args[0] if args else None)
        if not isinstance(tokens, Tensor) or tokens.is_floating_point():
            given = "inputs_embeds" if kwargs.get("inputs_embeds") is not None else "no input_ids"
            raise InstallError(
                f"{type(model).__name__} was called with {given}, and its mechanism needs the token ids "
                "(value_embedding); pass input_ids"
            )
        self.tokens = tokens

    def check_vocabulary(self, model: nn.Module) -> None:
        """Refuse a model whose vocabulary was resized after the mechanism was installed."""
        size = getattr(getattr(model, "config", None), "vocab_size", None)
        if self.vocab_size is not None and size not in (None, self.vocab_size):
            raise InstallError(
                f"the vocabulary of this {type(model).__name__} has {size} tokens since resize_token_embeddings, and "
                f"the tables of its mechanism (value_embedding) have {self.vocab_size}; install the mechanism again, "
                "which makes new tables, or resize before it is installed"
            )

    def get_tokens(self, stage: Value, batch: int, length: int) -> Tensor:
        """Return the token ids [b n] of a projection's input."""
        if self.tokens is None:
            raise InstallError(f"a layer was called by itself, but '{stage}' needs the token ids; call the model")
        if tuple(self.tokens.shape) != (batch, length):
            raise InstallError(
                f"'{stage}' needs one token id for each vector, and the model was called with input_ids "
                f"{tuple(self.tokens.shape)} where a layer projects {(batch, length)}: something is added to the "
                "sequence (a prompt, images), or its tokens are rearranged"
            )
        return self.tokens

    def end(self, model: nn.Module, args: Any, output: Any) -> Any:
        """End a pass: a hook after the model's forward that adds the terms to its loss while training."""
        self.depth = max(0, self.depth - 1)  # a pass that `begin` refused ends too
        if self.depth:
            return None
        self.opener = None
        self.total = sum(self.terms[1:], self.terms[0]) if self.terms else None
        self.firsts, self.tokens, self.terms = {}, None, []
        return _add_to_loss(output, self.total) if model.training and self.total is not None else None

    def get_first_values(self, stack: str, values: Tensor) -> Tensor:
        """Return the values of the first layer of a stack: the given ones if they are the first of the pass."""
        if self.depth == 0:
            raise InstallError(
                "a layer was called by itself, but its mechanism mixes in the first layer's values; call the model"
            )
        self.check_gradient("the first layer's values")
        return self.firsts.setdefault(stack, values)

    def add(self, term: Tensor) -> None:
        """Add a term to the loss; a layer that checkpointing recomputes outside a pass has added its term already."""
        if self.depth:
            self.check_gradient("the output penalty")
            self.terms.append(term)

    def check_gradient(self, what: str) -> None:
        """Refuse a reentrant checkpoint, under which a tensor of the pass context would have no gradient."""
        if self.has_gradient and not torch.is_grad_enabled():
            raise InstallError(
                f"{what} cannot pass through reentrant gradient checkpointing, which would lose its gradient; use "
                "model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={'use_reentrant': False})"
            )


def get_pass_context(attention: nn.Module) -> PassContext:
    """Return the context of an attention module's model.

    It is an attribute of the module, not of its layer, which peft may copy.
    """
    context: PassContext = vars(attention)[PASS_CONTEXT]
    return context


def _add_to_loss(output: Any, term: Tensor) -> Any:
    if isinstance(output, tuple):
        has_loss = bool(output) and isinstance(output[0], Tensor) and output[0].dim() == 0
        return (output[0] + term, *output[1:]) if has_loss else output
    if getattr(output, "loss", None) is not None:
        output["loss"] = output["loss"] + term.to(output["loss"].device)
    return output
