"""metrics.jsonl: one line per measurement, append-only; a line that is computed again is compared instead."""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from attnlab.checksums import parse_json
from attnlab.errors import TrainingError

from ..plain import check_plain, decode_nonfinite, encode_nonfinite
from .disk_errors import explain_disk_error, explain_disk_errors
from .files import Seal, make_folder, open_file, sync_folder, write_all

MetricRow = dict[str, Any]
Key = tuple[str, int, Any]
IDENTITY = ("kind", "step", "name")
"""The entries that identify a line together."""


class Metrics:
    """The metrics of one run, open for appending by the process that holds the run's lock."""

    def __init__(self, path: Path, say: Callable[[str], None], after: int = -1, seal: Seal | None = None) -> None:
        """Open the file, and cut off an incomplete last line.

        after: the step that a run resumes from, -1 for a new run. Lines from that step on are kept in memory to be
        compared with what is computed again. seal: that of the lines before, which must be the same.
        """
        if seal is not None:
            _check_beginning(path, seal)
        self.path, self.say, self._after = path, say, after
        self._before: dict[Key, MetricRow] = {}
        self._newest: dict[Key, MetricRow] = {}
        self._newest_step = -1
        self._has_differed = False
        self._descriptor = _open(path)
        try:
            whole = 0
            for end, line in _scan(path):
                whole = end
                if line["step"] >= after:
                    self._before[_key(line)] = line
            self._cut_torn_line(whole)
            self._digest = hashlib.sha256(path.read_bytes())
        except BaseException:
            self.close()
            raise

    def write(self, kind: str, step: int, values: Mapping[str, Any], timing: Mapping[str, float] | None = None) -> bool:
        """Append a line, or compare it with the recorded line of that kind, step and values["name"].

        Values must be equal to the last bit; `timing` may differ. Returns whether the line is new.
        """
        timing = timing or {}
        names = ["kind", "step", *values, *timing]
        assert len(set(names)) == len(names), f"duplicate names in one line: {names}"
        line = encode_nonfinite({"kind": kind, "step": step, **values, **timing})
        assert _is_record(line), f"a line needs a kind, a step and, if any, a name that is text: {line}"
        check_plain(line, f"the metrics of step {step}")
        key = _key(line)
        if (recorded := self._find_recorded_row(key)) is not None:
            self._compare(line, recorded, set(timing))
            return False
        self._append((json.dumps(line) + "\n").encode())
        if step > self._newest_step:
            self._newest_step = step
            self._newest.clear()
        if step == self._newest_step:
            self._newest[key] = line
        return True

    def sync(self) -> None:
        """Sync every line to the disk: before a checkpoint is written, so that no line before it can be missing."""
        with explain_disk_errors("write", self.path):
            os.fsync(self._descriptor)

    @property
    def seal(self) -> Seal:
        """The hash and the size of the lines so far."""
        return Seal(self._digest.hexdigest(), os.fstat(self._descriptor).st_size)

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    @staticmethod
    def read(path: Path, seal: Seal | None = None) -> list[MetricRow]:
        """Read every complete line, with NaN and the infinities as floats. seal: that the file must have."""
        if seal is not None:
            _check_beginning(path, seal)
        return [
            {name: value if name in IDENTITY else decode_nonfinite(value) for name, value in line.items()}
            for _, line in _scan(path)
        ]

    def _cut_torn_line(self, end: int) -> None:
        torn = os.fstat(self._descriptor).st_size - end
        if torn == 0:
            return
        with explain_disk_errors("write", self.path):
            os.ftruncate(self._descriptor, end)
            os.fsync(self._descriptor)
        self.say(f"cut {torn:,} bytes off the end of {self.path}: an incomplete line")

    def _append(self, line: bytes) -> None:
        end = os.fstat(self._descriptor).st_size
        with explain_disk_errors("write", self.path):
            try:
                write_all(self._descriptor, line)
            except BaseException:
                # A partial line would corrupt the next one. If cutting fails as well, the next start does it.
                with suppress(OSError):
                    os.ftruncate(self._descriptor, end)
                raise
        self._digest.update(line)

    def _find_recorded_row(self, key: Key) -> MetricRow | None:
        for known in (self._newest, self._before):
            if key in known:
                return known[key]
        if key[1] >= max(self._after, self._newest_step):
            return None
        return next((line for _, line in _scan(self.path) if _key(line) == key), None)

    def _compare(self, line: MetricRow, recorded: MetricRow, timing: set[str]) -> None:
        names = [name for name in {**recorded, **line} if name not in timing]
        differing = [name for name in names if _text(line, name) != _text(recorded, name)]
        if not differing or self._has_differed:
            return
        self._has_differed = True
        name = differing[0]
        self.say(
            f"this run is not reproduced exactly: from step {line['step']} on, first in {line['kind']} {name}, "
            f"{_text(recorded, name)} in {self.path} and {_text(line, name)} now. The recorded lines are kept. Exact "
            "results need the same machine, threads, versions and settings"
        )


def _check_beginning(path: Path, seal: Seal) -> None:
    """Compare the bytes that were written up to a checkpoint, or to the end of the run, with their seal."""
    try:
        with path.open("rb") as file:
            beginning = file.read(seal.size)
    except FileNotFoundError:
        beginning = b""
    except OSError as error:
        raise explain_disk_error("read", path, error) from error
    if len(beginning) < seal.size:
        problem = f"has {len(beginning):,} bytes where {seal.size:,} were written"
    elif hashlib.sha256(beginning).hexdigest() != seal.sha256:
        problem = "is not what was written: its SHA-256 differs"
    else:
        return
    advice = f"restore it from a copy, or delete {path.parent} to train the run again"
    raise TrainingError(f"{path} {problem}; {advice}")


def _open(path: Path) -> int:
    with explain_disk_errors("write", path):
        make_folder(path.parent)
        descriptor = open_file(path, os.O_RDWR | os.O_APPEND)
        sync_folder(path.parent)
    return descriptor


def _scan(path: Path) -> Iterator[tuple[int, MetricRow]]:
    """Yield the end of each line and the line; stop before an incomplete last one, raise an error for any other."""
    end = 0
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(file, 1):
                line = _parse(raw)
                if line is None and not file.readline():
                    return
                if not _is_record(line):
                    raise TrainingError(
                        f"line {number} of {path} is not a line of metrics: {raw[:60].decode('utf-8', 'replace')!r}; "
                        "restore the file from a copy, or delete that line"
                    )
                end += len(raw)
                yield end, line
    except FileNotFoundError as error:
        raise TrainingError(f"there is no {path}; is {path.parent} the folder of a run?") from error
    except OSError as error:
        raise explain_disk_error("read", path, error) from error


def _parse(raw: bytes) -> Any:
    if not raw.endswith(b"\n"):
        return None
    try:
        return parse_json(raw)
    except (ValueError, RecursionError):
        return None


def _is_record(line: Any) -> bool:
    if not isinstance(line, dict) or not isinstance(line.get("name", ""), str):
        return False
    return isinstance(line.get("kind"), str) and type(line.get("step")) is int


def _key(line: MetricRow) -> Key:
    return line["kind"], line["step"], line.get("name")


def _text(line: MetricRow, name: str) -> str:
    """Write a value as the file does: two floats have the same text only if they have the same bits."""
    return json.dumps(line[name], sort_keys=True) if name in line else "nothing"
