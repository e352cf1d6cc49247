"""What a run shares with runs of other arms that have its seed, as hashes: that they are pairs can be checked."""

from __future__ import annotations

import hashlib
from typing import Any

import torch
from torch import Tensor

from attnlab.install.weight_parts import weight_parts

from .job import Job
from .stream import hash_features

NUM_BATCHES = 3


def pairing_of(job: Job) -> dict[str, Any]:
    """Return hashes of the initial weights by name, of each segment's first batches, and of what is evaluated on."""
    batches = hashlib.sha256()
    for stream in job.streams:
        batches.update(stream.identity.encode())
        for step in range(min(NUM_BATCHES, stream.arrangement.steps_per_epoch)):
            for name, tensor in sorted(stream.make(stream.arrangement.rows(0, step), 0).items()):
                batches.update(f"{name} {hash_tensor(tensor)}".encode())
    return {
        "weights": {name: hash_tensor(weight) for name, weight in weight_parts(job.model)},
        "batches": batches.hexdigest(),
        "evaluation": "" if job.dev is None else hash_features(job.dev.features),
    }


def hash_tensor(tensor: Tensor) -> str:
    """Return the hash of a tensor's bytes."""
    plain = tensor.detach().cpu().contiguous()
    return hashlib.sha256(plain.reshape(-1).view(torch.uint8).numpy().data).hexdigest()[:16]
