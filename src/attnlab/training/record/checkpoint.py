"""Checkpoints of a run: each is a folder, written under a temporary name, synced, read back and then renamed.

An intact checkpoint remains whenever the process is killed: an old one is removed only after a newer one is verified.
"""

import hashlib
import json
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from attnlab.checksums import DamageError
from attnlab.errors import TrainingError

from ..plain import check_plain
from .disk_errors import explain_disk_error
from .files import Seal, make_folder, sync_folder, write_through
from .tensors import read_tensors, write_tensors

MODEL, OPTIMIZER, STATE = "model.safetensors", "optimizer.safetensors", "state.json"
FORMAT = 1
WRITING, REPLACED, REMOVING = ".writing-", ".replaced-", ".removing-"
"""Prefixes of the folder of a checkpoint that is being written, replaced by a new one of its step, or removed."""

FOLDER = re.compile(r"(?P<mark>|\.(writing|replaced|removing)-)(?P<name>step-(?P<step>\d{8,}))(?P<token>-[0-9a-f]{8})?")


@dataclass(frozen=True)
class Checkpoint:
    """Everything that a run needs to resume from a step."""

    step: int
    model: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    state: dict[str, Any]
    """Plain JSON; a tuple comes back as a list."""


class Checkpoints:
    """The checkpoints of one run. Any process may read them; the one that holds the run's lock writes."""

    def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
        self.folder, self.say = folder, say
        self._damaged: set[int] = set()

    def write(self, checkpoint: Checkpoint, *, best_step: int | None) -> Path:
        """Write a checkpoint, verify it, and remove older ones except for the last and the best."""
        target = self.folder / name_folder(checkpoint.step)
        try:
            make_folder(self.folder)
            self.remove_leftovers()
            try:
                aside = self._write_aside(checkpoint)
                if target.exists():  # removed only after the new one is in its place
                    target.rename(self.folder / f"{REPLACED}{target.name}")
                aside.rename(target)
                sync_folder(self.folder)
            finally:
                self.remove_leftovers()
        except OSError as error:
            tensors = [*checkpoint.model.values(), *checkpoint.optimizer.values()]
            size = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
            raise explain_disk_error(f"write the checkpoint ({size / 1e6:,.1f} MB)", target, error) from error
        self._damaged.discard(checkpoint.step)
        self._remove_older(checkpoint.step, best_step)
        return target

    def load_last(self) -> Checkpoint | None:
        """Load the newest intact checkpoint, with a message about each damaged newer one; None if there are none."""
        reasons = []
        steps = self.steps()
        for step in reversed(steps):
            try:
                return self._read(step)
            except DamageError as damage:
                reasons.append(f"{name_folder(step)}: {damage}")
                next_try = "; trying the one before it" if step != steps[0] else ""
                self.say(f"the checkpoint {self._find_folder(step)} is damaged: {damage}{next_try}")
        if reasons:
            raise TrainingError(
                f"no checkpoint in {self.folder} is intact ({'; '.join(reasons)}); restore one from a copy, or "
                "delete that folder to start the run again"
            )
        return None

    def load(self, step: int) -> Checkpoint:
        """Load the checkpoint of one step, such as the best."""
        steps = self.steps()
        if step not in steps:
            available = ", ".join(map(str, steps)) or "none"
            raise TrainingError(f"there is no checkpoint of step {step} in {self.folder}; available: {available}")
        try:
            return self._read(step)
        except DamageError as damage:
            others = ", ".join(str(other) for other in steps if other != step) or "none"
            raise TrainingError(
                f"the checkpoint {self._find_folder(step)} is damaged: {damage}; restore it from a copy, or use "
                f"another step (available: {others})"
            ) from damage

    def steps(self) -> list[int]:
        """List the steps that have a checkpoint, intact or not."""
        return sorted({int(match["step"]) for match in self._match_folders() if match["mark"] in ("", REPLACED)})

    def remove_leftovers(self) -> None:
        """Clean up after a process that was killed while writing or removing; only the writing process may do so."""
        for match in self._match_folders():
            path, place = self.folder / match[0], self.folder / match["name"]
            if match["mark"] == REPLACED and not place.exists():
                with suppress(OSError):
                    path.rename(place)
            elif match["mark"]:
                shutil.rmtree(path, ignore_errors=True)

    def _match_folders(self) -> list[re.Match[str]]:
        try:
            matches = [FOLDER.fullmatch(path.name) for path in self.folder.iterdir() if path.is_dir()]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise explain_disk_error("list the checkpoints in", self.folder, error) from error
        return [match for match in matches if match and _is_valid(match)]

    def _find_folder(self, step: int) -> Path:
        """Return a step's folder, under its other name if a process was killed while replacing it."""
        place = self.folder / name_folder(step)
        return place if place.exists() else self.folder / f"{REPLACED}{name_folder(step)}"

    def _read(self, step: int) -> Checkpoint:
        folder = self._find_folder(step)
        try:
            content = _read_state(folder)
            if content["step"] != step:
                raise DamageError(f"{STATE} is that of step {content['step']}")
            for name, seal in content["files"].items():
                _check_seal(folder / name, Seal(**seal))
            return Checkpoint(step, read_tensors(folder / MODEL), read_tensors(folder / OPTIMIZER), content["state"])
        except DamageError:
            self._damaged.add(step)
            raise

    def _write_aside(self, checkpoint: Checkpoint) -> Path:
        aside = self.folder / f"{WRITING}{name_folder(checkpoint.step)}-{secrets.token_hex(4)}"
        aside.mkdir()
        seals = {
            MODEL: write_tensors(aside / MODEL, checkpoint.model),
            OPTIMIZER: write_tensors(aside / OPTIMIZER, checkpoint.optimizer),
        }
        check_plain(checkpoint.state, "the run's state")
        files = {name: asdict(seal) for name, seal in seals.items()}
        content = {"format": FORMAT, "step": checkpoint.step, "files": files, "state": checkpoint.state}
        seals[STATE] = write_through(aside / STATE, [_encode_state(content)])
        sync_folder(aside)
        for name, seal in seals.items():
            if Seal.of(aside / name) != seal:
                raise TrainingError(
                    f"the disk returned other bytes than were written to {aside / name}; this checkpoint is discarded, "
                    "earlier ones are intact: check the disk, then give the same command again"
                )
        return aside

    def _remove_older(self, step: int, best_step: int | None) -> None:
        """Keep the last intact one before this step and the best."""
        older = [other for other in self.steps() if other < step]
        kept = {best_step, *[other for other in older if other not in self._damaged][-1:]}
        for other in older:
            if other not in kept:
                path = self.folder / name_folder(other)
                try:
                    # Renamed first, so that a partly removed checkpoint is not taken for a damaged one.
                    shutil.rmtree(path.rename(self.folder / f"{REMOVING}{path.name}"))
                except OSError as error:
                    self.say(f"cannot remove the old checkpoint {path}: {error.strerror or error}")


def read_checkpoint(run_folder: Path, is_best: bool, say: Callable[[str], Any]) -> Checkpoint:
    """Read the last checkpoint of the run in a folder, or its best."""
    checkpoints = Checkpoints(run_folder / "checkpoints", say)
    newest = checkpoints.load_last()
    if newest is None:
        raise TrainingError(f"the run in {run_folder} has no checkpoint yet; wait for its first")
    if not is_best:
        return newest
    best = newest.state["run"]["best"]
    if best is None:
        raise TrainingError(f"the run in {run_folder} was never evaluated, so it has no best checkpoint")
    return checkpoints.load(best["step"])


def name_folder(step: int) -> str:
    """Return the name of a step's folder."""
    return f"step-{step:08d}"


def _is_valid(match: re.Match[str]) -> bool:
    has_token = match["token"] is not None
    return match["name"] == name_folder(int(match["step"])) and has_token == (match["mark"] == WRITING)


def _encode_state(content: dict[str, Any]) -> bytes:
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return f'{{"sha256":"{hashlib.sha256(text.encode()).hexdigest()}","content":{text}}}\n'.encode()


def _read_state(folder: Path) -> dict[str, Any]:
    """Read state.json: the step, the seals of the tensor files, and the state of the run, after their hash."""
    with _explain_damage(STATE):
        raw = (folder / STATE).read_bytes()
    try:
        content: dict[str, Any] = json.loads(raw)["content"]
        is_intact = _encode_state(content) == raw
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise DamageError(f"{STATE} is cut or is not what was written: {error or type(error).__name__}") from error
    if not is_intact:
        raise DamageError(f"{STATE} is not what was written: its SHA-256 differs")
    if content["format"] != FORMAT:
        raise TrainingError(
            f"the checkpoint {folder} has format {content['format']}, and this attnlab reads format {FORMAT}; "
            "use the version of attnlab that wrote it"
        )
    return content


def _check_seal(path: Path, seal: Seal) -> None:
    with _explain_damage(path.name):
        # The size first: it costs nothing and tells a truncated file from a changed one.
        size = path.stat().st_size
        is_intact = size == seal.size and Seal.of(path) == seal
    if size != seal.size:
        raise DamageError(f"{path.name} has {size:,} bytes where {seal.size:,} were written")
    if not is_intact:
        raise DamageError(f"{path.name} is not what was written: its SHA-256 differs")


@contextmanager
def _explain_damage(name: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise DamageError(f"{name} is missing") from error
    except OSError as error:
        raise DamageError(f"{name} cannot be read: {error.strerror or error}") from error
