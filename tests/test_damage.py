"""Flipped bits and cuts in every file of runs, studies, caches, token files and exports: nothing is silently accepted.

After each damage, everything that reads the file is asked again: it is refused with one sentence, repaired with a
warning, or gives the same results, since none depends on those bytes or they are computed again. `make soak` runs this
file: `python -m tests.test_damage 300`.
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import attnlab
from attnlab.charts.drawing_cache import load_or_draw
from attnlab.checksums import hash_file
from attnlab.cli import main
from attnlab.data import load_tokenizer, open_source, pack, train_tokenizer
from attnlab.data.cache import hash_once
from attnlab.errors import AttnlabError, TrainingError
from attnlab.studies.answers.study_folder import open_record
from attnlab.studies.plan.planning import PlannedRun
from attnlab.studies.run.execution import _read_delivery
from attnlab.studies.study import Study
from attnlab.training import Segment, build, train
from attnlab.training.job.restore import restore
from tests.studies.samples import STUDY, quiet
from tests.training.runs import Stopping, lines_of, small, trained

RUN = small(segments=(Segment(steps=6, batch=4),), checkpoint_every=2, evaluate_every=3)
SMALL = STUDY.replace('slow = { mechanism = "cosine | softmax", set = { "optimizer.lr" = 1e-3 } }', "")
Answer = Any
WORDS = ("same", "repaired", "refused", "TRACEBACK", "SILENT")
FAULTS = WORDS[3:]
Ask = Callable[[Path], Answer]


@dataclass(frozen=True)
class Subject:
    """A folder with files, and the questions whose answers may depend on them."""

    name: str
    folder: Path
    asks: tuple[Ask, ...]


def hash_model(model: Any) -> str:
    """Return a hash of a model's weights and settings."""
    digest = hashlib.sha256(model.config.to_json_string(use_diff=False).encode())
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode() + tensor.detach().numpy().tobytes())
    generation = getattr(model, "generation_config", None)
    return digest.hexdigest() + (generation.to_json_string() if generation is not None else "")


def ask_restored(folder: Path) -> Answer:
    """Rebuild the model of a run from its last checkpoint; a message that another one was taken is a refusal."""
    said: list[str] = []
    restored = restore(folder, say=said.append)
    if said:
        raise TrainingError(said[0])
    return hash_model(restored.model), restored.state, restored.run, restored.tokenizer.backend_tokenizer.to_str()


def ask_resumed(folder: Path) -> Answer:
    """Go on with a run, and return how it ends."""
    _, result = trained(RUN, folder)
    return result.last, result.best, result.loss, lines_of(folder), ask_restored(folder)[0]


def ask_delivered(folder: Path) -> Answer:
    """Return what a study takes from the folder of a run that has ended."""
    delivery = _read_delivery(PlannedRun("run", "arm", "size", "phase", 1, RUN), 1, folder)
    return delivery.status, delivery.result, delivery.metrics, delivery.pairing, delivery.ids, delivery.scores


def ask_exported(folder: Path) -> Answer:
    """Load an export, its tokenizer and its stage."""
    return hash_model(attnlab.load(folder)), load_tokenizer(folder).backend_tokenizer.to_str()


def ask_study(folder: Path) -> Answer:
    """Read the verdicts of a study, and what they rest on."""
    with open_record(folder) as record:
        answers = [answer.record() for answer in record.answers]
        scores = [record.ledger.scores(run.id, "accuracy") for run in record.runs]
        lines = [record.ledger.lines(run.id, "evaluation") for run in record.runs]
        figures = [row.result["last"] for row in record.results.values()]
        examples = [record.ledger.examples(run.id) for run in record.runs]
        texts = [finding.record() for finding in record.findings]
        return repr(answers), [None if one is None else one.tolist() for one in scores], lines, figures, examples, texts


def ask_runs(folder: Path) -> Answer:
    """Return what a study without its ledger takes from the folders of its runs."""
    return [ask_delivered(run) for run in sorted((folder / "runs").iterdir())]


def ask_cached(folder: Path) -> Answer:
    """Train a tokenizer, pack text, hash a file and draw, all through the cache in a folder."""
    kept = os.environ["ATTNLAB_CACHE"]
    os.environ["ATTNLAB_CACHE"] = str(folder)
    text = next(place / "text.txt" for place in folder.parents if (place / "text.txt").exists())
    try:
        file = pack(open_source(text), train_tokenizer(open_source(text), "word"))
        drawing = load_or_draw("a chart", lambda: b"a picture" * 9)
        return (
            file.tokens.tolist(), file.ends.tolist(), file.hash, file.num_unknown, file.made_of, drawing,
            hash_once(text, hash_file), file.tokenizer.backend_tokenizer.to_str(),
        )  # fmt: skip
    finally:
        os.environ["ATTNLAB_CACHE"] = kept


def make_subjects(place: Path) -> Iterator[Subject]:
    """Make a folder of each kind."""
    trained(RUN, place / "run")
    yield Subject("finished run", place / "run", (ask_restored, ask_delivered))
    train(build(RUN), place / "unfinished", Stopping([4]))
    yield Subject("unfinished run", place / "unfinished", (ask_resumed,))
    assert main(["export", str(place / "run"), "--out", str(place / "export")]) == 0
    yield Subject("export", place / "export", (ask_exported,))
    (place / "study.toml").write_text(SMALL, encoding="utf-8")
    Study.load(place / "study.toml").run(place / "study", say=quiet)
    assert main(["report", str(place / "study")]) == 0
    yield Subject("study", place / "study", (ask_study, ask_runs))
    (place / "text.txt").write_text("one two three\nfour five six seven\n" * 30, encoding="utf-8")
    os.utime(place / "text.txt", (1, 1))
    time.sleep(2.1)  # a hash is kept of a file that has settled
    ask_cached(place / "cache")
    yield Subject("cache and token file", place / "cache", (ask_cached,))


def damage(file: Path, draw: random.Random) -> str:
    """Flip a bit of a file, or cut it."""
    whole = file.read_bytes()
    if draw.random() < 0.25:
        file.write_bytes(whole[: draw.randrange(len(whole))])
        return "cut"
    place = draw.randrange(len(whole))
    file.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << draw.randrange(8)]) + whole[place + 1 :])
    return "flip"


def judge(subject: Subject, right: list[Answer], copy: Path) -> str:
    """Ask everything of a damaged copy: refused, repaired or irrelevant (the same answers), or SILENT."""
    outcomes = set()
    for ask, answer in zip(subject.asks, right, strict=True):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                outcomes.add(("repaired" if said else "same") if ask(copy) == answer else "SILENT")
            except AttnlabError:
                outcomes.add("refused")
            except Exception as error:
                print(f"{type(error).__name__}: {error}", flush=True)
                outcomes.add("TRACEBACK")
    return next(word for word in WORDS[::-1] if word in outcomes)


def name_kind(subject: Subject, file: Path) -> str:
    """Name the kind of a file: its subject, and its name without what is drawn or counted."""
    parts = file.relative_to(subject.folder).parts
    kept = [part for part in parts if not part.startswith("step-") or part.endswith(".json")]
    kept = ["…" if len(part) >= 16 and all(letter in "0123456789abcdef" for letter in part) else part for part in kept]
    last = "step-….json" if kept[-1].startswith("step-") else kept[-1]
    return f"{subject.name}: {'/'.join([*kept[:-1], last])}"


def damage_all(num_damages: int, seed: int, place: Path) -> Counter[tuple[str, str]]:
    """Damage files of every subject in turn, each in a fresh copy; count the outcomes by kind of file."""
    draw, counts = random.Random(seed), Counter[tuple[str, str]]()
    subjects = list(make_subjects(place))
    right = []
    for subject in subjects:  # the answers of undamaged copies
        shutil.copytree(subject.folder, place / "copy" / subject.folder.name)
        right.append([ask(place / "copy" / subject.folder.name) for ask in subject.asks])
        shutil.rmtree(place / "copy")
    files = [
        sorted(file for file in subject.folder.rglob("*") if file.is_file() and file.stat().st_size)
        for subject in subjects
    ]
    for number in range(num_damages):
        which = number % len(subjects)
        subject = subjects[which]
        file = files[which][number // len(subjects) % len(files[which])]
        copy = place / "copy" / subject.folder.name
        shutil.copytree(subject.folder, copy)
        how = damage(copy / file.relative_to(subject.folder), draw)
        outcome = judge(subject, right[which], copy)
        counts[name_kind(subject, file), outcome] += 1
        if outcome in FAULTS:
            print(f"{outcome}: damage {number} of seed {seed}: {how} in {file}", flush=True)
        shutil.rmtree(place / "copy")
    return counts


def soak(num_damages: int, seed: int = 0) -> int:
    """Damage so many files and print a table; return the number of silent acceptances and tracebacks."""
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as name:
        os.environ["ATTNLAB_CACHE"] = str(Path(name) / "own cache")
        counts = damage_all(num_damages, seed, Path(name))
    print(f"{'file':<70}{''.join(f'{word:>10}' for word in WORDS)}")
    for kind in sorted({kind for kind, _ in counts}):
        print(f"{kind:<70}{''.join(f'{counts[kind, word]:>10}' for word in WORDS)}")
    total = Counter[str]()
    for (_, word), number in counts.items():
        total[word] += number
    print(f"{num_damages} damages: {', '.join(f'{total[word]} {word}' for word in WORDS)}")
    return sum(total[word] for word in FAULTS)


@pytest.mark.skipif("ATTNLAB_SOAK" not in os.environ, reason="a minute long: `make soak` damages 300 files")
def test_some_damages_of_every_kind_are_never_silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path / "own cache"))
    counts = damage_all(10, 0, tmp_path)
    assert sum(counts.values()) == 10
    assert [kind for kind, outcome in counts if outcome in FAULTS] == []


if __name__ == "__main__":
    sys.exit(soak(int(sys.argv[1]) if len(sys.argv) > 1 else 300) > 0)
