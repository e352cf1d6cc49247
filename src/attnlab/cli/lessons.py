"""What `attnlab demo` trains: a small GPT-2 with each of four mechanisms, on the text that comes with Python.

One seed an arm says nothing about which is better. It shows that training works, and that a mechanism which reads the
future is caught where it is fed the past alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from attnlab.charts.curves import Point
from attnlab.errors import TrainingError
from attnlab.kernels.measure import one_thread, three_digits
from attnlab.mechanisms import CATALOG, Entry

if TYPE_CHECKING:
    from attnlab.training import Result, Run

SEED = 0
SLACK = 1e-3
"""The part of a perplexity that may differ between the two ways to feed a sound model; rounding takes a millionth."""
SPREAD = 0.12
"""The deviation of initial weights. GPT-2's own 0.02 is for a width of 768; so narrow a model learns slowly from it."""


@dataclass(frozen=True)
class Course:
    """What is trained: the arms, the model's sizes, the text, and for how long."""

    arms: Sequence[str] = ("baseline", "additive", "value-bypass", "leaking-mask")
    source: str = "embedded:pydoc"
    num_pieces: int = 1500
    num_dev: int = 6
    num_layers: int = 2
    width: int = 64
    num_heads: int = 4
    length: int = 24
    batch: int = 32
    steps: int = 300
    lr: float = 1.2e-2
    evaluate_every: int = 50
    log_every: int = 5
    prompt: str = "if the object is"
    num_tokens: int = 24

    @property
    def sentence(self) -> str:
        """What is trained, in words."""
        return (
            f"a GPT-2 of {self.num_layers} layers, {self.width} wide, with {self.num_heads} heads and "
            f"{self.num_pieces:,} word pieces; {self.steps} steps of {self.batch} rows of {self.length} tokens; "
            f"{self.source}, {self.num_dev} documents held out; seed {SEED}, fp32, one thread"
        )


@dataclass(frozen=True)
class Lesson:
    """One arm, trained: its losses on the way, what it reached, and how it goes on with the prompt."""

    entry: Entry
    result: Result
    training: Sequence[Point]
    dev: Sequence[Point]
    perplexity: float
    honest_perplexity: float
    sample: str

    @property
    def num_parameters(self) -> int:
        """How many numbers were trained."""
        return self.result.parameters["trained"]

    @property
    def tokens_per_second(self) -> float:
        """How fast it trained."""
        return self.result.tokens / self.result.seconds

    @property
    def train_loss(self) -> float:
        """The mean loss of the last steps."""
        return self.training[-1].value

    @property
    def is_honest(self) -> bool:
        """Whether it predicts as well from the past alone."""
        return abs(self.honest_perplexity / self.perplexity - 1) <= SLACK

    @property
    def holds(self) -> bool:
        """Whether it learned something, and is honest unless it is a specimen."""
        return self.train_loss < self.training[0].value and self.is_honest != self.entry.specimen

    @property
    def note(self) -> str:
        """What the two perplexities say."""
        if self.is_honest:
            return "sound: from the past alone the same"
        return f"caught: from the past alone {three_digits(self.honest_perplexity / self.perplexity)} times as high"


def teach(name: str, course: Course) -> Lesson:
    """Train one arm in a folder that is gone afterwards."""
    # Imported here because transformers takes seconds, and all that the demo shows before needs none of it.
    from attnlab.tasks import sample
    from attnlab.training import Display, build, evaluate, train
    from attnlab.training.record import Metrics

    with TemporaryDirectory(prefix="attnlab-") as folder, one_thread():
        job = build(plan(name, course))
        result = train(job, folder, Display(is_quiet=True))
        if result.status == "interrupted":
            raise KeyboardInterrupt
        if result.status != "finished":
            raise TrainingError(f"'{name}' did not train to the end: {result.sentence}")
        assert job.dev is not None, "the embedded text has a dev split"
        scores, _ = evaluate(job.model, dataclasses.replace(job.task, is_honest=True), job.dev)
        lines = Metrics.read(Path(folder) / "metrics.jsonl")
        said = sample(
            job.model, job.tokenizer, course.prompt, num_tokens=course.num_tokens, temperature=0.8, top_k=40, seed=SEED
        )
    losses = {
        kind: [Point(name, SEED, line["step"], line["loss"]) for line in lines if line["kind"] == kind]
        for kind in ("train", "evaluation")
    }
    found = scores.figures
    return Lesson(
        CATALOG[name], result, losses["train"], losses["evaluation"],
        found["perplexity"], found["honest_perplexity"], said,
    )  # fmt: skip


def plan(name: str, course: Course) -> Run:
    """Return the run of one arm."""
    from attnlab.training import Data, Optimizer, Run, Settings, Stage, Start, Watching

    config = {
        "n_layer": course.num_layers, "n_embd": course.width, "n_head": course.num_heads,
        "n_positions": course.length + course.num_tokens, "initializer_range": SPREAD,
        "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
    }  # fmt: skip
    stages = (Stage(steps=course.steps, batch=course.batch),)
    return Run(
        "clm",
        Start("gpt2", config=config, mechanism=name),
        Data(course.source, num_dev=course.num_dev, tokenizer=f"wordpiece:{course.num_pieces}"),
        {"max_len": course.length},
        Settings(stages, SEED, Optimizer(lr=course.lr, betas=(0.9, 0.95)), precision="fp32"),
        Watching(course.evaluate_every, log_every=course.log_every),
        threads=1,
    )
