"""What a run leaves on disk: its lock, its metrics, its checkpoints and its small JSON files; nothing is ever lost.

Names load on first use: only checkpoints need torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnlab.lazy import load_on_first_use

if TYPE_CHECKING:
    from .checkpoint import Checkpoint, Checkpoints
    from .files import read_json, write_json
    from .lock import locked
    from .metrics import Metrics

HOMES = {
    "Checkpoint": "checkpoint", "Checkpoints": "checkpoint", "Metrics": "metrics", "locked": "lock",
    "read_json": "files", "write_json": "files",
}  # fmt: skip
"""The file of each public name."""

__all__ = ["Checkpoint", "Checkpoints", "Metrics", "locked", "read_json", "write_json"]

__getattr__, __dir__ = load_on_first_use(__name__, HOMES)
