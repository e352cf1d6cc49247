"""Packing against the raw speed of `tokenizers`, and the most memory that packing a whole corpus takes.

With ATTNLAB_DATA naming a folder that has enwiki2015/ and vocabs/, the corpus is 200 MB of Wikipedia; without it,
what attnlab embeds, which says little about memory.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter

from attnlab.data import TokenFile, load_tokenizer, open_source, pack, train_tokenizer
from attnlab.kernels.measure import show_seconds, time_each
from benchmarks.table import Row, Table, at_most, compared

SHARE_OF_SPEED = 0.8
MEMORY = 500_000_000
"""The most that packing may take, in bytes, whatever the corpus."""


@dataclass(frozen=True)
class Corpus:
    """What is packed: a part to compare speeds on, and the whole."""

    part: str
    whole: str
    split: str | None
    tokenizer: str | None
    """A vocabulary; None trains word pieces on the part."""


@dataclass(frozen=True)
class Packed:
    """What packing a whole corpus came to."""

    num_tokens: int
    seconds: float
    peak: int


def table(corpus: Corpus | None = None, budget: float = 20) -> Table:
    """Compare speeds on a part, then pack the whole in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        chosen = corpus or find_corpus() or write_corpus(Path(folder))
        taken = time_each(steps(chosen), budget)
        whole = pack_apart(chosen)
    rows = [
        Row("packing a part", "time", taken["packing"], "encode_batch", taken["raw"], at_most(1 / SHARE_OF_SPEED)),
        Row("packing the whole", "memory", whole.peak, "the limit", MEMORY, at_most(1)),
    ]
    speed = f"{whole.num_tokens / whole.seconds:,.0f} a second"
    came_to = f"{whole.num_tokens:,} tokens in {show_seconds(whole.seconds)}, {speed}"
    notes = [f"The whole is {Path(chosen.whole).name}: {came_to}. Its memory is all of the process's, torch included."]
    if chosen.tokenizer is None:
        notes.append(
            "ATTNLAB_DATA is not set: the corpus is Python's own prose, repeated; set it for 200 MB of Wikipedia."
        )
    return compared("Packing text into token files, all cores", rows, notes)


def find_corpus() -> Corpus | None:
    """Return Wikipedia where ATTNLAB_DATA has it."""
    folder = Path(os.environ.get("ATTNLAB_DATA") or os.devnull)
    whole, vocabulary = folder / "enwiki2015", folder / "vocabs" / "bert-base-uncased-vocab.txt"
    if not (whole.is_dir() and vocabulary.is_file()):
        return None
    return Corpus(str(whole / "valid.txt.xz"), str(whole), "train", str(vocabulary))


def write_corpus(folder: Path, part: int = 8, whole: int = 64) -> Corpus:
    """Write Python's own prose into files, so many times over."""
    prose = "\n\n".join(open_source("embedded:pydoc").documents())
    for name, times in (("part.txt", part), ("whole.txt", whole)):
        (folder / name).write_text("\n\n".join([prose] * times), encoding="utf-8")
    return Corpus(str(folder / "part.txt"), str(folder / "whole.txt"), None, None)


def steps(corpus: Corpus) -> dict[str, Callable[[], object]]:
    """Return packing a source, reading included, and encoding its documents, which are in memory already."""
    source = open_source(corpus.part, unit="paragraph")
    tokenizer = train_tokenizer(source) if corpus.tokenizer is None else load_tokenizer(corpus.tokenizer)
    documents = list(source.documents())

    def packing() -> TokenFile:
        # A source keeps its hash, and is to be read as if for the first time.
        fresh = open_source(corpus.part, unit="paragraph")
        with tempfile.TemporaryDirectory() as folder:
            return pack(fresh, tokenizer, Path(folder) / "tokens")

    def raw() -> int:
        encoded = tokenizer.backend_tokenizer.encode_batch(documents, add_special_tokens=False)
        return sum(len(one.ids) for one in encoded)

    return {"packing": packing, "raw": raw}


def pack_apart(corpus: Corpus) -> Packed:
    """Pack the whole in a process of its own, whose memory is nothing else's."""
    command = [sys.executable, "-m", "benchmarks.data", json.dumps(asdict(corpus))]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parent.parent)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return Packed(**json.loads(done.stdout.splitlines()[-1]))


def pack_here(corpus: Corpus) -> Packed:
    """Pack the whole in this process, and read off its peak."""
    source = open_source(corpus.whole, split=corpus.split, unit="paragraph")
    if corpus.tokenizer is None:
        tokenizer = train_tokenizer(open_source(corpus.part, unit="paragraph"))
    else:
        tokenizer = load_tokenizer(corpus.tokenizer)
    started = perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        packed = pack(source, tokenizer, Path(folder) / "tokens")
    return Packed(packed.num_tokens, perf_counter() - started, peak_memory())


def peak_memory() -> int:
    """Return the most memory this process has held, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():
        # Not getrusage, whose peak begins at that of the process which started this one.
        line = next(line for line in status.read_text(encoding="utf-8").splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    import resource

    # Bytes on a Mac, the one system without /proc that attnlab's tests have met.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    print(json.dumps(asdict(pack_here(Corpus(**json.loads(sys.argv[1]))))))
