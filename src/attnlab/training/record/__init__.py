"""What a run leaves on disk: its lock, its metrics, its checkpoints and its small JSON files; nothing is ever lost."""

from .checkpoint import Checkpoint, Checkpoints
from .files import read_json, write_json
from .lock import locked
from .metrics import Metrics

__all__ = ["Checkpoint", "Checkpoints", "Metrics", "locked", "read_json", "write_json"]
