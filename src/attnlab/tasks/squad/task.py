"""SQuAD as a task: windows of question and context, the loss of start and end, answers, and the official figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attnlab.data import Source
from attnlab.errors import TaskError

from ..batch import Batch, Feature, pad
from ..floors import NUM_WORDS, best_of, first_words
from ..metrics.squad import SquadFigures, score_v1, score_v2
from ..objective import answered, check_finite, forward, with_penalty
from ..scores import Reference, Scores, per_example
from . import oracle
from .question import SquadQuestion, check_ids, read_questions
from .spans import Logits, Search, SquadAnswer
from .threshold import NullThreshold, tune
from .windows import ContextWindow, make_windows

NUM_TRIED = 1000
"""Questions on which the length of the best opening is found; it is then scored on all of them."""
HEAD = "AutoModelForQuestionAnswering"


@dataclass(frozen=True)
class Squad:
    """Answer a question with a span of its context; in v2.0 also say that there is none."""

    name: str = "squad"
    has_null: bool = False
    max_len: int = 384
    stride: int = 128
    search: Search = field(default_factory=Search)
    null_threshold: NullThreshold = field(default_factory=NullThreshold)
    head: str = HEAD
    primary: str = "f1"
    higher_is_better: bool = True

    @property
    def ceiling(self) -> float:
        """Every answer right, in percent."""
        return 100.0

    def floor(self, dev: Any, train_features: Iterable[Feature] = ()) -> Reference | None:
        """Return the best constant span: the first words of the context, or for v2.0 no answer at all."""
        contexts = [(question.id, question.context) for question in dev.examples]
        some = {key for key, _ in contexts[:: max(1, len(contexts) // NUM_TRIED)]}
        tried = [question for question in dev.examples if question.id in some]
        by_length = {count: self.score(first_words(contexts, count), tried).value for count in NUM_WORDS}
        best = max(by_length, key=lambda count: by_length[count])
        answers = {f"the first {best} words of the paragraph": first_words(contexts, best)}
        if self.has_null:
            answers["no answer"] = dict.fromkeys((key for key, _ in contexts), "")
        values = {name: self.score(given, dev.examples).value for name, given in answers.items()}
        return best_of(values, higher_is_better=True)

    @property
    def head_settings(self) -> Mapping[str, Any]:
        """Two logits a token: start and end."""
        return {"num_labels": 2}

    def examples(self, source: str | Source, split: str | None = None) -> list[SquadQuestion]:
        """Read the questions of a SQuAD file or any source of its form."""
        questions = read_questions(source, split)
        empty = next((question for question in questions if not question.answers), None)
        if empty is not None and not self.has_null:
            raise TaskError(
                f"{empty.place}: question '{empty.id}' has no answer, and SQuAD v1.1 knows no such questions; "
                "use the task squad_v2"
            )
        return questions

    def features(self, examples: Sequence[SquadQuestion], tokenizer: Any) -> list[Feature]:
        """Encode each question with its context, in windows that overlap where the context is long."""
        return list(make_windows(examples, tokenizer, self.max_len, self.stride))

    def collate(self, features: Sequence[Feature], *, seed: int = 0, epoch: int = 0) -> Batch:
        """Make a batch of windows."""
        return pad(features)

    def loss(self, model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        """Return the mean of the losses of start and end."""
        starts, ends = _logits(model, forward(model, batch))
        if "attention_mask" in batch:
            # No answer is in padding; without this a loss would depend on what else is in its batch.
            is_padding = batch["attention_mask"].to(starts.device) == 0
            starts, ends = starts.masked_fill(is_padding, -torch.inf), ends.masked_fill(is_padding, -torch.inf)
        first = F.cross_entropy(starts.float(), batch["start_positions"].to(starts.device))
        last = F.cross_entropy(ends.float(), batch["end_positions"].to(ends.device))
        return with_penalty(model, (first + last) / 2)

    def count(self, batch: Mapping[str, Tensor]) -> int:
        """Return how many windows there are."""
        return len(batch["input_ids"])

    def predict(self, model: nn.Module, batches: Iterable[Batch]) -> dict[str, SquadAnswer]:
        """Return the answer to every question with a window in the batches, whose order does not matter."""
        parts: dict[str, list[tuple[ContextWindow, Logits, Logits]]] = {}
        for batch, output in answered(model, batches):
            starts, ends = (logits.double().cpu() for logits in _logits(model, output))
            check_finite(starts, [feature.key for feature in batch.features])
            for row, window in enumerate(batch.features):
                assert isinstance(window, ContextWindow)
                n = len(window.begins)
                own = window, starts[row, :n].numpy(), ends[row, :n].numpy()
                parts.setdefault(window.key, []).append(own)
        threshold = self.null_threshold.value if self.has_null else None
        return {key: self.search.of_question(own, threshold) for key, own in parts.items()}

    def score(self, predictions: Mapping[str, SquadAnswer | str], examples: Sequence[SquadQuestion]) -> Scores:
        """Return the official figures; v1.1 counts a question without a prediction as wrong, v2.0 refuses."""
        if self.has_null:
            self.null_threshold.refuse_overlap(examples)
        texts = {key: given if isinstance(given, str) else given.text for key, given in predictions.items()}
        check_ids(examples)
        check_known(texts, examples)
        golds = {question.id: question.answers for question in examples}
        scores = self.scores(score_v2(golds, texts) if self.has_null else score_v1(golds, texts), texts)
        return replace(scores, clusters=[question.cluster for question in examples])

    def scores(self, official: SquadFigures, given: Mapping[str, str]) -> Scores:
        """Return official figures as scores of this task."""
        ids = list(official.exact)
        single = per_example(ids, exact=official.exact, f1=official.f1)
        in_percent = {name: 100.0 * values for name, values in single.items()}
        missing = [key for key in ids if key not in given]
        return Scores(self.name, self.primary, official.figures, ids, in_percent, missing=missing, ceiling=self.ceiling)

    def tuned(self, answers: Mapping[str, SquadAnswer], held_out: Sequence[SquadQuestion]) -> Squad:
        """Return this task with a null threshold tuned on questions held out of the training set."""
        return replace(self, null_threshold=tune(held_out, answers))

    def oracle(self, examples: Sequence[SquadQuestion], tokenizer: Any) -> dict[str, SquadAnswer]:
        """Answer from logits that point at gold answers: what then is wrong is lost in windows, offsets or length."""
        windows = make_windows(examples, tokenizer, self.max_len, self.stride)
        return oracle.answer(examples, windows, self.search, self.null_threshold.value if self.has_null else None)


def check_known(predictions: Mapping[str, str], examples: Sequence[SquadQuestion]) -> None:
    """Refuse predictions of which none is about these questions: they belong to another file."""
    if not predictions or any(question.id in predictions for question in examples):
        return
    raise TaskError(
        f"none of {len(predictions)} predictions, such as '{next(iter(predictions))}', is for one of the "
        f"{len(examples)} questions, such as '{examples[0].id}' ({examples[0].place}); they belong to other data"
    )


def _logits(model: nn.Module, output: Any) -> tuple[Tensor, Tensor]:
    starts, ends = getattr(output, "start_logits", None), getattr(output, "end_logits", None)
    if not isinstance(starts, Tensor) or not isinstance(ends, Tensor):
        raise TaskError(f"{type(model).__name__} gives no start and end logits; SQuAD needs a model of {HEAD}")
    return starts, ends
