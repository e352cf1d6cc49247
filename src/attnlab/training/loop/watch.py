"""What is observed between updates: evaluations, traces, samples, losses of sentences. It changes no weights."""

import dataclasses
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from attnlab.errors import TrainingError
from attnlab.tasks import Clm, Reference, sample, sentence_losses
from attnlab.tasks.objective import NotFiniteError

from ..job.job import Job
from ..job.samples import check_samples
from ..plain import encode_nonfinite
from ..record.files import write_json
from ..result import Evaluation, late_step
from ..tracking.trackers import Trackers
from ..tuning.positions import count_free_positions
from .evaluation import EvaluationStoppedError, evaluate, make_record
from .stopping import StopRequest
from .trace import trace


class Watch:
    """Observes a run, and records what it observes."""

    def __init__(self, job: Job, folder: Path, metrics: Any, trackers: Trackers, stop: StopRequest) -> None:
        self.job, self.folder, self.metrics, self.trackers, self.stop = job, folder, metrics, trackers, stop
        if job.settings.sample_every is not None:
            self._check_samples()

    def observe(self, step: int) -> Evaluation | NotFiniteError | Literal["interrupted"] | None:
        """Trace, sample and evaluate after a step, if due; an error that the model diverged is returned."""
        try:
            self._trace_and_sample(step)
            is_due = self.is_regular(step) or step == late_step(self.job.num_steps)
            return self._evaluate(step) if is_due and self.job.dev is not None else None
        except EvaluationStoppedError:
            return "interrupted"
        except NotFiniteError as error:
            return error

    def is_regular(self, step: int) -> bool:
        """Tell whether a step's evaluation counts for the best one and for patience; the late one alone does not."""
        return step == self.job.num_steps or self._is_due(self.job.settings.evaluate_every, step)

    def _is_due(self, every: int | None, step: int) -> bool:
        return every is not None and (step % every == 0 or step == self.job.num_steps)

    def _trace_and_sample(self, step: int) -> None:
        if self._is_due(self.job.settings.trace_every, step):
            stream = self.job.streams[-1]
            batch = stream.make(stream.arrangement.rows(0, 0), 0)
            self.metrics.write("trace", step, trace(self.job.model, batch))
        if self._is_due(self.job.settings.sample_every, step):
            self._sample(step)
        if step == self.job.num_steps and self.job.known is not None:
            scores, _ = evaluate(self.job.model, self.job.task, self.job.known, self.stop.__bool__)
            self.metrics.write("training set", step, scores.record())

    @cached_property
    def floor(self) -> Reference | None:
        """The figure of the best trivial strategy on the evaluation data."""
        floor: Reference | None = self.job.task.floor(self.job.dev, self.job.streams[-1].features)
        return floor

    def _evaluate(self, step: int) -> Evaluation:
        assert self.job.dev is not None
        task = self.job.task
        if getattr(task, "has_leak_free_perplexity", False) and step != self.job.num_steps:
            task = dataclasses.replace(task, has_leak_free_perplexity=False)  # a pass per position, so only at the end
        scores, predictions = evaluate(self.job.model, task, self.job.dev, self.stop.__bool__)
        scores = dataclasses.replace(scores, floor=self.floor)
        if self.metrics.write("evaluation", step, scores.record()):
            self.trackers.log(step, scores.figures, "dev")
        answers = encode_nonfinite(make_record(scores, predictions))
        write_json(self.folder / "predictions" / f"step-{step:08d}.json", answers)
        note = scores.collapse.sentence if scores.collapse is not None else ""
        reference: dict[str, Any] = dict(scores.reference)
        return Evaluation(step, scores.primary, dict(scores.figures), note, **reference, tuning=self._tune(task, step))

    def _tune(self, task: Any, step: int) -> float | None:
        """Return the figure by which the best checkpoint is chosen, if it is not that of the evaluation itself."""
        if self.job.tune is None:
            return None
        scores, _ = evaluate(self.job.model, task, self.job.tune, self.stop.__bool__)
        self.metrics.write("tuning", step, scores.record())
        return float(scores.figures[scores.primary])

    def _check_samples(self) -> None:
        """Raise an error before training if samples could not be drawn."""
        job = self.job
        if job.tokenizer is None or job.task.head != "AutoModelForCausalLM":
            raise TrainingError(
                f"samples need a causal model with a tokenizer, which a run of '{job.task.name}' does not have; leave "
                "sample_every out"
            )
        check_samples(job.settings, job.tokenizer, count_free_positions(job.model), job.task)
        if job.settings.sentences:
            sentence_losses(job.model, job.tokenizer, job.settings.sentences, self._sentence_task)

    @property
    def _sentence_task(self) -> Clm:
        """The run's task, for whole sentences: their start and end, in one forward pass."""
        return Clm(has_start=self.job.task.has_start, has_end=self.job.task.has_end)

    def _sample(self, step: int) -> None:
        """Record continuations of prompts, and losses of sentences."""
        job, settings = self.job, self.job.settings
        for number, prompt in enumerate(settings.prompts):
            text = sample(
                job.model, job.tokenizer, prompt, num_tokens=settings.num_tokens, seed=number, task=job.task
            )  # fmt: skip
            self.metrics.write("sample", step, {"name": f"prompt {number}", "prompt": prompt, "text": text})
        if settings.sentences:
            losses = sentence_losses(job.model, job.tokenizer, settings.sentences, self._sentence_task)
            for number, (text, loss) in enumerate(zip(settings.sentences, losses, strict=True)):
                values = {"name": f"sentence {number}", "text": text, "loss": loss.per_token, "tokens": loss.num_tokens}
                self.metrics.write("sentence", step, values)


class NoMetrics:
    """The metrics of a process that writes none."""

    def write(self, *line: Any) -> bool:
        """Write nothing."""
        return False

    sync = close = write
