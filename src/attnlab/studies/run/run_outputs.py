"""What a run leaves in its folder, as a study takes it in; and a folder that was moved, made to fit again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from attnlab.errors import StudyError
from attnlab.training import RunSpec
from attnlab.training.folder import CONFIG, PAIRING, RESULT
from attnlab.training.record import Metrics, read_json, write_json
from attnlab.training.record.plain import spell, unspell

from ..ledger.database import Delivery
from .address import readdressed
from .server import ERROR, LOG


def has_ended(folder: Path) -> bool:
    """Tell whether the run in a folder has come to an end."""
    return (folder / RESULT).exists()


def delivery_of(run: str, attempt: int, folder: Path) -> Delivery:
    """Read all that a run that has ended leaves."""
    result = read_json(folder / RESULT)
    try:
        ids: Sequence[str] = ()
        scores: dict[str, list[float]] = {}
        clusters: Sequence[str] | None = None
        if result["last"] is not None:
            answers = read_json(folder / "predictions" / f"step-{result['last']['step']:08d}.json")
            ids, scores, clusters = answers["ids"], unspell(answers["per_example"]), answers["clusters"]
        metrics = Metrics.read(folder / "metrics.jsonl") if (folder / "metrics.jsonl").exists() else []
        pairing = read_json(folder / PAIRING)
        lines = [spell(line) for line in metrics]
        return Delivery(run, attempt, result["status"], result, lines, pairing, ids, scores, clusters)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StudyError(
            f"{folder} does not hold what a run leaves ({type(error).__name__}: {error}); delete it to run it again"
        ) from error


def last_words(folder: Path, status: int) -> str:
    """Say why the process of a run has ended, by its signal or by what it said last."""
    log = folder / LOG
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines() if log.exists() else []
    if status < 0:
        hint = "; was there memory enough?" if status == -9 else ""
        return f"its process was ended by signal {-status}{hint}"
    return lines[-1].removeprefix(ERROR) if lines else f"its process ended with status {status}"


def readdress(folder: Path, run: RunSpec) -> None:
    """Let a folder say where things are now: its id is proof that only places and names can have changed."""
    if not (folder / CONFIG).exists():
        return
    kept = read_json(folder / CONFIG)
    try:
        now = readdressed(kept, run.config)
    except (KeyError, TypeError, ValueError) as error:
        raise StudyError(f"{folder / CONFIG} is not that of this run; delete {folder} to run it again") from error
    if now != kept:
        write_json(folder / CONFIG, now)
