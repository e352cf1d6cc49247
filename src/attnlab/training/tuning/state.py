"""What a checkpoint of a tuned model needs: the trained tensors, and a hash to know the frozen ones again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import torch
from torch import Tensor, nn


def trained_state(model: nn.Module) -> dict[str, Tensor]:
    """Return the parameters that train, each once under its first name, and the buffers that are saved.

    The tensors are the model's own, not copies; `model.load_state_dict(state, strict=False)` takes such a state back.
    """
    trained = {name: p.detach() for name, p in model.named_parameters() if p.requires_grad}
    return trained | dict(saved_buffers(model))


def saved_buffers(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Yield the buffers that belong to a model's state, each once; what a config determines does not."""
    seen: set[int] = set()
    for path, module in model.named_modules():
        for name, buffer in module.named_buffers(recurse=False):
            if name not in module._non_persistent_buffers_set and id(buffer) not in seen:
                seen.add(id(buffer))
                yield f"{path}.{name}" if path else name, buffer


def frozen_hash(model: nn.Module) -> str:
    """Return the SHA-256 of the frozen parameters: their names, dtypes, shapes and bytes, in the order of names."""
    digest = hashlib.sha256()
    frozen = {name: p.detach() for name, p in model.named_parameters() if not p.requires_grad}
    for name in sorted(frozen):
        tensor = frozen[name].cpu().contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
