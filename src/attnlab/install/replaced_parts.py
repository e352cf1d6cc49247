"""The parts of a model's attention that a mechanism replaces or drops, and what `uninstall` gives back."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from attnlab.errors import InstallError

from .attention_modules import AttentionModule
from .inspection import attention_layers
from .layer import Layer
from .own_parts import OwnPart, find_replacement


class ReplacedParts:
    """The parts of one attention module that its mechanism replaces or drops.

    started: the parts at whose values a parameter of the layer started, by the name of the parameter.
    dropped: what the model no longer uses, in words.
    """

    def __init__(self, attention: AttentionModule, parts: Mapping[str, OwnPart], layer: Layer) -> None:
        self.module = attention.module
        self.handles: list[RemovableHandle] = []
        self.frozen: list[OwnPart] = []
        self.started: dict[str, OwnPart] = {}
        self.dropped: list[str] = []
        for name, part in parts.items():
            is_replaced, parameter = find_replacement(name, layer.mechanism)
            if is_replaced or not part.stays_with(layer.mechanism):
                self._take_out(part)
                if not is_replaced:
                    self.dropped.append(part.words)
                elif part.learns and not self._start(part, parameter, layer):
                    self.dropped.append(f"the learned values of {part.words}")
        self.freeze()

    def freeze(self) -> None:
        """Exclude from training what the model no longer uses."""
        for part in self.frozen:
            for weight in part.list_weights():
                weight.requires_grad_(False)

    def _take_out(self, part: OwnPart) -> None:
        if part.module is not None:
            self.handles.append(part.module.register_forward_hook(_return_input))
        if any(weight.requires_grad for weight in part.list_weights()):
            self.frozen.append(part)

    def _start(self, part: OwnPart, parameter: str | None, layer: Layer) -> bool:
        """Start a parameter at the values of a part; tell whether it has their shape."""
        if parameter is None or part.weight is None:
            return False
        if parameter in layer.owners:
            return True  # the layer uses the parameter of another one, which starts there
        learned: nn.Parameter = getattr(layer, parameter)
        if learned.numel() != part.weight.numel():
            return False
        with torch.no_grad():
            learned.copy_(part.read().reshape(learned.shape))
        self.started[parameter] = part
        return True

    def undo(self) -> None:
        """Give the parts back, with the current values of the parameters that started there."""
        for handle in self.handles:
            handle.remove()
        layer = next(attention_layers(self.module))[2]
        for name, part in self.started.items():
            part.write(getattr(layer, name).detach())
        for part in self.frozen:
            for weight in part.list_weights():
                weight.requires_grad_()


def _return_input(module: nn.Module, args: Any, output: Any) -> Tensor:
    given: Tensor = args[0]
    if not isinstance(output, Tensor) or output.shape != given.shape:
        raise InstallError(f"{type(module).__name__} is not a norm of its input, so that a line cannot replace it")
    return given
