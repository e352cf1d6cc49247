"""state.json of a checkpoint: the step, the seals of the tensor files, the run's own state, and a hash over it all."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from attnlab.errors import TrainingError

from .files import Seal
from .plain import check_plain
from .trouble import DamageError

FORMAT = 1
STATE = "state.json"


@dataclass(frozen=True)
class StateFile:
    """What state.json says."""

    step: int
    files: dict[str, Seal]
    state: dict[str, Any]

    def encode(self) -> bytes:
        """Return the bytes of the file."""
        check_plain(self.state, "the run's state")
        seals = {name: asdict(seal) for name, seal in self.files.items()}
        return _encode({"format": FORMAT, "step": self.step, "files": seals, "state": self.state})

    @classmethod
    def read(cls, folder: Path) -> StateFile:
        """Read the file of a checkpoint's folder; any byte that is not as written is damage."""
        content = _decode(folder / STATE)
        if content["format"] != FORMAT:
            raise TrainingError(
                f"the checkpoint {folder} is of format {content['format']}, and this attnlab reads format {FORMAT}; "
                "use the version of attnlab that wrote it"
            )
        seals = {name: Seal(**seal) for name, seal in content["files"].items()}
        return cls(content["step"], seals, content["state"])

    def check(self, folder: Path) -> None:
        """Hold the tensor files of a folder against their seals."""
        for name, seal in self.files.items():
            try:
                # The size first: it tells a cut from a change, and costs nothing.
                size = (folder / name).stat().st_size
                found = Seal.of(folder / name) if size == seal.size else None
            except FileNotFoundError as error:
                raise DamageError(f"{name} is missing") from error
            except OSError as error:
                raise DamageError(f"{name} cannot be read: {error.strerror or error}") from error
            if found is None:
                raise DamageError(f"{name} has {size:,} bytes where {seal.size:,} were written")
            if found != seal:
                raise DamageError(f"{name} is not what was written: its SHA-256 differs")


def _encode(content: dict[str, Any]) -> bytes:
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return f'{{"sha256":"{hashlib.sha256(text.encode()).hexdigest()}","content":{text}}}\n'.encode()


def _decode(path: Path) -> dict[str, Any]:
    try:
        raw = path.read_bytes()
    except FileNotFoundError as error:
        raise DamageError(f"{STATE} is missing") from error
    except OSError as error:
        raise DamageError(f"{STATE} cannot be read: {error.strerror or error}") from error
    try:
        content: dict[str, Any] = json.loads(raw)["content"]
        is_whole = _encode(content) == raw
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise DamageError(f"{STATE} is cut or is not what was written: {error or type(error).__name__}") from error
    if not is_whole:
        raise DamageError(f"{STATE} is not what was written: its SHA-256 differs")
    return content
