"""Checkpoints of a run: each is a folder, written aside, synced, read back, and only then given its name.

Whatever moment a process is killed at, a whole checkpoint is found: an old one goes when a newer one is proven.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from attnlab.errors import TrainingError

from .files import Seal, make_folder, sync_folder, write_through
from .plain import check_plain
from .tensors import read_tensors, write_tensors
from .trouble import DamageError, trouble

MODEL, OPTIMIZER, STATE = "model.safetensors", "optimizer.safetensors", "state.json"
FORMAT = 1
WRITING, REPLACED, REMOVING = ".writing-", ".replaced-", ".removing-"
"""Before the name of a checkpoint that is not yet there, gives way to a new one of its step, or is on its way out."""

OURS = re.compile(
    r"(?P<mark>\.writing-|\.replaced-|\.removing-|)(?P<name>step-(?P<step>\d{8,}))(?P<token>-[0-9a-f]{8})?"
)


@dataclass(frozen=True)
class Checkpoint:
    """All that a run needs to go on from a step as if it had never stopped."""

    step: int
    model: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    state: dict[str, Any]
    """Plain JSON; a tuple comes back as a list."""


class Checkpoints:
    """The checkpoints of one run. Any number of processes may read them; one, which has the run's lock, writes."""

    def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
        self.folder = folder
        self.say = say
        self._damaged: set[int] = set()

    def write(self, checkpoint: Checkpoint, *, best_step: int | None) -> Path:
        """Write a checkpoint, prove it, and remove those before it but for the last one and the best."""
        target = self.folder / name_of(checkpoint.step)
        try:
            make_folder(self.folder)
            self.tidy()
            try:
                self._put(self._write_aside(checkpoint), target)
            finally:
                self.tidy()
        except OSError as error:
            tensors = [*checkpoint.model.values(), *checkpoint.optimizer.values()]
            size = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
            raise trouble(f"write the checkpoint ({size / 1e6:,.1f} MB)", target, error) from error
        self._damaged.discard(checkpoint.step)
        self._remove_older(checkpoint.step, best_step)
        return target

    def last(self) -> Checkpoint | None:
        """Return the newest whole checkpoint, and say of each newer one what is wrong with it; None where none is."""
        reasons = []
        steps = self.steps()
        for step in reversed(steps):
            try:
                return self._read(step)
            except DamageError as damage:
                reasons.append(f"{name_of(step)}: {damage}")
                then = "; trying the one before it" if step != steps[0] else ""
                self.say(f"the checkpoint {self._home(step)} is damaged: {damage}{then}")
        if reasons:
            raise TrainingError(
                f"no checkpoint in {self.folder} is whole ({'; '.join(reasons)}); bring one back from a copy, or "
                "delete that folder to start the run from its beginning"
            )
        return None

    def at(self, step: int) -> Checkpoint:
        """Return the checkpoint of one step, such as the best."""
        steps = self.steps()
        if step not in steps:
            there = ", ".join(map(str, steps)) or "none"
            raise TrainingError(f"there is no checkpoint of step {step} in {self.folder}; the steps there: {there}")
        try:
            return self._read(step)
        except DamageError as damage:
            others = ", ".join(str(other) for other in steps if other != step) or "none"
            raise TrainingError(
                f"the checkpoint {self._home(step)} is damaged: {damage}; bring it back from a copy, or use another "
                f"step (there: {others})"
            ) from damage

    def steps(self) -> list[int]:
        """List the steps that have a checkpoint, whole or not."""
        return sorted({int(found["step"]) for found in self._ours() if found["mark"] in ("", REPLACED)})

    def tidy(self) -> None:
        """Put right what a process left when it was killed while writing or removing. For the one who writes."""
        for found in self._ours():
            path, place = self.folder / found[0], self.folder / found["name"]
            if found["mark"] == REPLACED and not place.exists():
                with suppress(OSError):
                    path.rename(place)
            elif found["mark"]:
                shutil.rmtree(path, ignore_errors=True)

    def _ours(self) -> list[re.Match[str]]:
        """Match the names that are ours; nothing else in the folder is looked at."""
        try:
            matches = [OURS.fullmatch(path.name) for path in self.folder.iterdir() if path.is_dir()]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise trouble("look for checkpoints in", self.folder, error) from error
        return [found for found in matches if found and _is_ours(found)]

    def _home(self, step: int) -> Path:
        """Find a step's folder, also where a process was killed between taking away the old and putting in the new."""
        place = self.folder / name_of(step)
        return place if place.exists() else self.folder / f"{REPLACED}{name_of(step)}"

    def _read(self, step: int) -> Checkpoint:
        folder = self._home(step)
        try:
            content = StateFile.read(folder)
            if content.step != step:
                raise DamageError(f"{STATE} is that of step {content.step}")
            content.check(folder)
            return Checkpoint(step, read_tensors(folder / MODEL), read_tensors(folder / OPTIMIZER), content.state)
        except DamageError:
            self._damaged.add(step)
            raise

    def _write_aside(self, checkpoint: Checkpoint) -> Path:
        aside = self.folder / f"{WRITING}{name_of(checkpoint.step)}-{secrets.token_hex(4)}"
        aside.mkdir()
        seals = {
            MODEL: write_tensors(aside / MODEL, checkpoint.model),
            OPTIMIZER: write_tensors(aside / OPTIMIZER, checkpoint.optimizer),
        }
        state = StateFile(checkpoint.step, seals, checkpoint.state).encode()
        seals[STATE] = write_through(aside / STATE, [state])
        sync_folder(aside)
        for name, seal in seals.items():
            if Seal.of(aside / name) != seal:
                raise TrainingError(
                    f"the disk gave back other bytes than were written to {aside / name}; the checkpoint is not kept, "
                    "those before it are untouched: look after the disk, then give the same command again"
                )
        return aside

    def _put(self, aside: Path, target: Path) -> None:
        """Give a proven checkpoint its name. An older one of that step is set aside, not removed, until it has it."""
        if target.exists():
            target.rename(self.folder / f"{REPLACED}{target.name}")
        aside.rename(target)
        sync_folder(self.folder)

    def _remove_older(self, step: int, best_step: int | None) -> None:
        """Keep the one before this step and the best; a damaged one does not count as the one before."""
        older = [other for other in self.steps() if other < step]
        kept = {best_step, *[other for other in older if other not in self._damaged][-1:]}
        for other in older:
            if other not in kept:
                path = self.folder / name_of(other)
                try:
                    # Renamed first: half a checkpoint must not look like a damaged one.
                    shutil.rmtree(path.rename(self.folder / f"{REMOVING}{path.name}"))
                except OSError as error:
                    self.say(f"cannot remove the old checkpoint {path}: {error.strerror or error}")


def name_of(step: int) -> str:
    """Name the folder of a step."""
    return f"step-{step:08d}"


def _is_ours(found: re.Match[str]) -> bool:
    has_token = found["token"] is not None
    return found["name"] == name_of(int(found["step"])) and has_token == (found["mark"] == WRITING)


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
