"""What a checkpoint of a tuned model stores: the trained tensors, and a hash that identifies the frozen ones.

Weights that a mixer has replaced are frozen, but stored too: a run cannot be rebuilt from elsewhere if all else trains.
"""

import hashlib

import torch
from torch import Tensor, nn

from attnlab.install.inspection import list_replaced_parameters


def get_trained_state(model: nn.Module) -> dict[str, Tensor]:
    """Return trainable and replaced parameters and persistent buffers, each once under its first name.

    The tensors are not copies; `model.load_state_dict(state, strict=False)` loads such a state.
    """
    replaced = {id(parameter) for parameter in list_replaced_parameters(model)}
    state = {name: p.detach() for name, p in model.named_parameters() if p.requires_grad or id(p) in replaced}
    seen: set[int] = set()
    for path, module in model.named_modules():
        for name, buffer in module.named_buffers(recurse=False):
            if name not in module._non_persistent_buffers_set and id(buffer) not in seen:
                seen.add(id(buffer))
                state[f"{path}.{name}" if path else name] = buffer
    return state


def hash_frozen_weights(model: nn.Module) -> str:
    """Return the SHA-256 of the frozen parameters: their names, dtypes, shapes and bytes, in the order of names."""
    digest = hashlib.sha256()
    frozen = {name: p.detach() for name, p in model.named_parameters() if not p.requires_grad}
    for name in sorted(frozen):
        tensor = frozen[name].cpu().contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
