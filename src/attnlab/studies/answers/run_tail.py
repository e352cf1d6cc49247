"""The metrics of a run in progress; each reading continues where the last one ended."""

import math
from collections import deque
from pathlib import Path
from typing import Any, NamedTuple

from attnlab.inputs import parse_json
from attnlab.training.plain import decode_nonfinite

METRICS = "metrics.jsonl"
NUM_POINTS = 60
"""Points of a curve."""
NUM_RECENT = 10
"""Lines that the pace is estimated from."""


class EvaluationPoint(NamedTuple):
    """The primary metric of an evaluation during training."""

    step: int
    name: str
    value: float


class Tail:
    """The metrics of one run; an incomplete last line is left for the next reading."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / METRICS
        self._reset(None)

    def _reset(self, inode: int | None) -> None:
        self.inode = inode
        self.offset = self.step = self.num_lines = 0
        self.loss: float | None = None
        self.tokens_per_second: float | None = None
        self.evaluations: list[EvaluationPoint] = []
        self.points: list[tuple[int, float]] = []
        self.every = 1
        self.recent: deque[tuple[int, float]] = deque(maxlen=NUM_RECENT)

    def read(self) -> None:
        """Read what was written since the last reading."""
        try:
            with self.path.open("rb") as file:
                stat = self.path.stat()
                # A folder that was deleted and begun anew, or copied from elsewhere.
                if stat.st_ino != self.inode or stat.st_size < self.offset:
                    self._reset(stat.st_ino)
                file.seek(self.offset)
                new = file.read()
        except FileNotFoundError:
            return
        whole = new.rfind(b"\n") + 1
        self.offset += whole
        for raw in new[:whole].splitlines():
            self._add_line(raw)

    def _add_line(self, raw: bytes) -> None:
        try:
            line = parse_json(raw)
            step, kind = int(line["step"]), line["kind"]
            if kind == "train":
                self._add_update(step, decode_nonfinite(line))
            elif kind == "evaluation":
                name = line["primary"]
                self.evaluations.append(EvaluationPoint(step, name, float(decode_nonfinite(line[name]))))
        except (ValueError, TypeError, KeyError, RecursionError):
            return  # the run itself reports a broken line

    def _add_update(self, step: int, line: dict[str, Any]) -> None:
        loss, speed = float(line["loss"]), float(line["tokens_per_second"])
        self.step, self.loss = step, loss
        self.tokens_per_second = speed or self.tokens_per_second  # the first line of a process has none
        self.recent.append((step, float(line["seconds"])))
        if self.num_lines % self.every == 0 and math.isfinite(loss):
            self.points.append((step, loss))
        self.num_lines += 1
        if len(self.points) > 2 * NUM_POINTS:
            self.points, self.every = self.points[::2], 2 * self.every

    @property
    def curve(self) -> list[tuple[int, float]]:
        """The loss by step, thinned, up to the newest."""
        has_newest = self.loss is not None and math.isfinite(self.loss) and self.points[-1:] != [(self.step, self.loss)]
        return [*self.points, (self.step, self.loss)] if has_newest and self.loss is not None else list(self.points)

    @property
    def evaluation(self) -> EvaluationPoint | None:
        """The newest evaluation, None before there is one."""
        return self.evaluations[-1] if self.evaluations else None

    @property
    def held_out(self) -> list[tuple[int, float]]:
        """The primary metric on held-out data by step, thinned, up to the newest."""
        points = [(one.step, one.value) for one in self.evaluations if math.isfinite(one.value)]
        every = -(-len(points) // (2 * NUM_POINTS)) or 1
        return points[::-every][::-1]

    @property
    def pace(self) -> float | None:
        """Seconds per update over the last lines; None before there is one."""
        if not self.recent:
            return None
        (first, began), (last, ended) = self.recent[0], self.recent[-1]
        if last > first and ended > began:
            return (ended - began) / (last - first)
        return ended / last if last > 0 else None
