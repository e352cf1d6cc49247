"""What is looked at between updates: evaluations, traces, samples, losses of sentences. None of it moves a weight."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

from attnlab.errors import TrainingError
from attnlab.tasks import Reference, sample, sentence_losses
from attnlab.tasks.objective import NotFiniteError

from ..job.job import Job
from ..positions import check_positions
from ..record import write_json
from ..record.plain import spell
from ..result import Evaluation, late_step
from .evaluation import EvaluationStoppedError, as_answers, evaluate
from .ranks import Ranks
from .stopping import StopRequest
from .trace import trace


class Diverged(NamedTuple):
    """What a model that answers with NaN or infinity was asked."""

    reason: str


Seen = Evaluation | Diverged | Literal["interrupted"] | None


class Watch:
    """Looks at a run, and writes down what it sees."""

    def __init__(self, job: Job, folder: Path, metrics: Any, ranks: Ranks, stop: StopRequest) -> None:
        self.job, self.folder, self.metrics, self.stop = job, folder, metrics, stop
        if job.settings.sample_every is not None:
            self.check_voice()
        is_charted = job.settings.has_tensorboard and ranks.is_first
        self.writer = open_tensorboard(folder / "tensorboard") if is_charted else None

    def is_due(self, every: int | None, step: int) -> bool:
        """Tell whether something is to be done after a step: every so many, and at the end."""
        return every is not None and (step % every == 0 or step == self.job.num_steps)

    def look(self, step: int) -> Seen:
        """Look at the model after a step."""
        try:
            return self.look_around(step)
        except EvaluationStoppedError:
            return "interrupted"
        except NotFiniteError as error:
            return Diverged(str(error))

    def look_around(self, step: int) -> Evaluation | None:
        """Trace, sample and evaluate, where that is due."""
        watching = self.job.settings
        if self.is_due(watching.trace_every, step):
            stream = self.job.streams[-1]
            batch = stream.make(stream.arrangement.rows(0, 0), 0)
            self.metrics.write("trace", step, trace(self.job.model, batch))
        if self.is_due(watching.sample_every, step):
            self.listen(step)
        is_last = step == self.job.num_steps
        if is_last and self.job.known is not None:
            scores, _ = evaluate(self.job.model, self.job.task, self.job.known, self.stop.__bool__)
            self.metrics.write("training set", step, scores.record())
        if self.job.dev is None or not (self.is_regular(step) or step == late_step(self.job.num_steps)):
            return None
        return self.evaluate(step)

    def is_regular(self, step: int) -> bool:
        """Tell whether a step's evaluation counts for the best one and for patience; the late one alone does not."""
        return step == self.job.num_steps or self.is_due(self.job.settings.evaluate_every, step)

    @cached_property
    def floor(self) -> Reference | None:
        """What the best trivial strategy reaches on what the run is evaluated on; found out once."""
        found: Reference | None = self.job.task.floor(self.job.dev, self.job.streams[-1].features)
        return found

    def evaluate(self, step: int) -> Evaluation:
        """Ask the task for its figures; a request to stop is honoured between batches."""
        assert self.job.dev is not None
        task = self.job.task
        if getattr(task, "is_honest", False) and step != self.job.num_steps:
            task = dataclasses.replace(task, is_honest=False)  # a pass for every position, which the end alone is worth
        scores, predictions = evaluate(self.job.model, task, self.job.dev, self.stop.__bool__)
        scores = dataclasses.replace(scores, floor=self.floor)
        self.metrics.write("evaluation", step, scores.record())
        self.chart(scores.figures, step, "dev/")
        answers = spell(as_answers(scores, predictions))
        write_json(self.folder / "predictions" / f"step-{step:08d}.json", answers)
        note = scores.collapse.sentence if scores.collapse is not None else ""
        return Evaluation(step, scores.primary, dict(scores.figures), note, **scores.reference)  # type: ignore[arg-type]

    def check_voice(self) -> None:
        """Refuse samples that could not be drawn, before anything has been trained."""
        job = self.job
        if job.tokenizer is None or job.task.head != "AutoModelForCausalLM":
            raise TrainingError(
                f"samples need a model that reads forwards and its tokenizer, which a run of '{job.task.name}' has "
                "not; leave sample_every out"
            )
        for prompt in job.settings.prompts:
            sample(job.model, job.tokenizer, prompt, num_tokens=0)
            check_positions(job.model, self.num_ids(prompt) + job.settings.num_tokens - 1, "a prompt with its sample")
        for sentence in job.settings.sentences:
            check_positions(job.model, self.num_ids(sentence) + 1, "a sentence")
        if job.settings.sentences:
            sentence_losses(job.model, job.tokenizer, job.settings.sentences)

    def num_ids(self, text: str) -> int:
        """Return how many tokens a text has behind a start token."""
        return 1 + len(self.job.tokenizer(text, add_special_tokens=False)["input_ids"])

    def listen(self, step: int) -> None:
        """Let a model that reads forwards continue prompts, and say the loss of sentences."""
        job, watching = self.job, self.job.settings
        for number, prompt in enumerate(watching.prompts):
            text = sample(job.model, job.tokenizer, prompt, num_tokens=watching.num_tokens, seed=number)
            self.metrics.write("sample", step, {"name": f"prompt {number}", "prompt": prompt, "text": text})
        if watching.sentences:
            losses = sentence_losses(job.model, job.tokenizer, watching.sentences)
            for number, (text, loss) in enumerate(zip(watching.sentences, losses, strict=True)):
                values = {"name": f"sentence {number}", "text": text, "loss": loss.per_token, "tokens": loss.num_tokens}
                self.metrics.write("sentence", step, values)

    def chart(self, figures: Mapping[str, Any], step: int, prefix: str = "train/") -> None:
        """Hand figures to TensorBoard, where that was asked for."""
        if self.writer is not None:
            for name, value in figures.items():
                self.writer.add_scalar(prefix + name, value, step)
            self.writer.flush()


class Nowhere:
    """The metrics of a process that writes none."""

    def write(self, *line: Any) -> None:
        """Leave it to the first process."""

    def sync(self) -> None:
        """Have nothing to put on the disk."""

    def close(self) -> None:
        """Have nothing to close."""


def open_tensorboard(folder: Path) -> Any:
    """Open TensorBoard's event files."""
    try:
        # Imported here because it is an option, and most do without it.
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise TrainingError("TensorBoard files need the package tensorboard; install attnlab[tensorboard]") from error
    writer: Any = SummaryWriter(str(folder))
    return writer
