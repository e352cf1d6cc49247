"""The attention of each arm's trained model on one held-out text, kept in the ledger once it was computed.

Weights are stored as levels of the square root of their size, which is what a picture shows: few kilobytes for an arm.
"""

import base64
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..ledger.database import ENDED
from ..plan.planning import PlannedRun
from .study_folder import Record

KIND = "attention"
"""The kind of its events in the ledger."""
LEVELS = 31
"""Steps between no weight and the largest one."""

Weights = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class HeadWeights:
    """The weights of the heads of one model, [layers heads queries keys], and the numbers of these layers."""

    weights: Weights
    layers: tuple[int, ...]

    def record(self) -> dict[str, Any]:
        """Return the weights as plain data, rounded to levels."""
        most = float(np.abs(self.weights).max()) or 1.0
        levels = np.rint(np.sqrt(np.abs(self.weights) / most) * LEVELS) * np.sign(self.weights)
        packed = base64.b64encode(zlib.compress(levels.astype(np.int8).tobytes(), 9)).decode()
        return {"shape": list(self.weights.shape), "layers": list(self.layers), "most": most, "levels": packed}

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Self:
        """Read the output of `record`."""
        levels = np.frombuffer(zlib.decompress(base64.b64decode(record["levels"])), dtype=np.int8)
        shares = levels.reshape(record["shape"]) / LEVELS
        return cls(np.sign(shares) * shares**2 * record["most"], tuple(record["layers"]))


@dataclass(frozen=True)
class AttentionRecord:
    """The attention of the models of several arms, all of one phase, size and seed, on the same tokens.

    missing: arms without weights, and why. is_final: whether computing it again would give the same.
    """

    runs: Mapping[str, str]
    """The run of each arm, by its id."""
    tokens: tuple[str, ...]
    arms: Mapping[str, HeadWeights]
    missing: Mapping[str, str]
    is_final: bool = True

    def dump(self) -> str:
        """Return it as JSON."""
        arms = {arm: weights.record() for arm, weights in self.arms.items()}
        return json.dumps({
            "runs": dict(self.runs), "tokens": list(self.tokens), "arms": arms, "missing": dict(self.missing),
        })  # fmt: skip

    @classmethod
    def parse(cls, content: str) -> Self:
        """Read the output of `dump`."""
        record = json.loads(content)
        arms = {arm: HeadWeights.of(weights) for arm, weights in record["arms"].items()}
        return cls(record["runs"], tuple(record["tokens"]), arms, record["missing"])


def choose_runs(record: Record) -> list[PlannedRun]:
    """Return the run of each arm whose attention is shown: of the last compared phase, the last size, the first seed.

    The first seed that the baseline has ended with counts; an arm whose run has not ended is left out.
    """
    design = record.design
    compared = [phase.name for phase in design.phases if phase.smallest is not None]
    place = (compared or [design.phases[-1].name])[-1], list(design.sizes)[-1]
    ended = {id for id, row in record.results.items() if row.status in ENDED}
    runs = [run for run in record.runs if (run.phase, run.size) == place and run.id in ended]
    seed = next((run.seed for run in runs if run.arm == design.baseline), None)
    return [run for run in runs if run.seed == seed]


def read_attention(record: Record, runs: list[PlannedRun]) -> AttentionRecord | None:
    """Return the stored attention of these runs; None if it was not computed yet."""
    wanted = {run.arm: run.id for run in runs}
    stored = (AttentionRecord.parse(content) for content in reversed(record.ledger.events(KIND)))
    return next((one for one in stored if dict(one.runs) == wanted), None)


def find_attention(record: Record) -> AttentionRecord | str:
    """Return the attention of the arms of a study that has ended, computed at the first call; or why there is none."""
    runs = choose_runs(record)
    if not runs:
        return "the baseline has no run that ended"
    if (stored := read_attention(record, runs)) is not None:
        return stored
    if not any((record.folder_of(run) / "checkpoints").is_dir() for run in runs):
        return "they are computed from the checkpoints of runs, and those of this study are not in its folder"
    if record.ledger.is_read_only:
        return f"they are computed once and then stored, and {record.folder} cannot be written"
    # Imported here because only attention that is not stored needs torch.
    from .attention import compute_attention

    computed = compute_attention(record, runs)
    if computed.is_final:
        record.ledger.add_event(KIND, computed.dump())
    return computed
