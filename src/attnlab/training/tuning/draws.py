"""Random numbers for what tuning adds: each tensor's start depends on the seed and its own name alone."""

from __future__ import annotations

import torch

from attnlab.data.draws import keys_of, name_key


def generator_of(seed: int, name: str) -> torch.Generator:
    """Return a generator for one tensor; torch's own is left alone."""
    return torch.Generator().manual_seed(int(keys_of(seed, name_key(name))) >> 1)
