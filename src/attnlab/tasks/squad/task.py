"""SQuAD as a task: windows of question and context, the loss of start and end, and the official figures."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attnlab.data import Source
from attnlab.errors import TaskError
from attnlab.special_tokens import SpecialTokens

from ..batch import Batch, Feature, PaddedTask
from ..floors import NUM_WORDS, answer_first_words, choose_best
from ..frame import Frame
from ..metrics.squad import SquadFigures, score_v1, score_v2
from ..objective import add_penalty, check_batches, check_finite, evaluation_mode, forward
from ..reading import check_unique_ids
from ..scores import Reference, Scores
from .oracle import answer_from_golds
from .question import SquadQuestion, read_questions
from .spans import Logits, Search, SquadAnswer
from .threshold import NullThreshold, tune_threshold
from .windows import ContextWindow, make_windows

NUM_SAMPLED = 1000
"""Questions that choose the length of the best opening, which is then scored on all questions."""
HEAD = "AutoModelForQuestionAnswering"


@dataclass(frozen=True)
class Squad(PaddedTask):
    """Answer a question with a span of its context; in v2.0 the answer may be empty."""

    name: str = "squad"
    has_null: bool = False
    max_len: int = 384
    stride: int = 128
    search: Search = field(default_factory=Search)
    null_threshold: NullThreshold = field(default_factory=NullThreshold)
    head: str = HEAD
    primary: str = "f1"
    higher_is_better: bool = True

    ceiling: ClassVar[float] = 100.0
    head_settings: ClassVar[Mapping[str, Any]] = {"num_labels": 2}

    def floor(self, dev: Any, train_features: Iterable[Feature] = ()) -> Reference | None:
        """Return the best constant answer: the first words of the context, or for v2.0 the empty answer."""
        contexts = [(question.id, question.context) for question in dev.examples]
        some = {key for key, _ in contexts[:: max(1, len(contexts) // NUM_SAMPLED)]}
        sampled = [question for question in dev.examples if question.id in some]
        by_length = {count: self.score(answer_first_words(contexts, count), sampled).value for count in NUM_WORDS}
        best = max(by_length, key=lambda count: by_length[count])
        answers = {f"the first {best} words of the paragraph": answer_first_words(contexts, best)}
        if self.has_null:
            answers["no answer"] = dict.fromkeys((key for key, _ in contexts), "")
        values = {name: self.score(given, dev.examples).value for name, given in answers.items()}
        return choose_best(values, higher_is_better=True)

    def examples(self, source: str | Source, split: str | None = None) -> list[SquadQuestion]:
        """Read the questions of a SQuAD file or any source of its form."""
        questions = read_questions(source, split)
        empty = next((question for question in questions if not question.answers), None)
        if empty is not None and not self.has_null:
            raise TaskError(
                f"{empty.place}: question '{empty.id}' has no answer, which SQuAD v1.1 does not allow; use "
                "the task squad_v2"
            )
        return questions

    def find_special_tokens(self, tokenizer: Any) -> SpecialTokens:
        """Return the special tokens of a single text."""
        return Frame.of(tokenizer).find_special_tokens(tokenizer)

    def features(self, examples: Sequence[SquadQuestion], tokenizer: Any) -> list[Feature]:
        """Encode each question with its context, in overlapping windows if the context is long."""
        return list(make_windows(examples, tokenizer, self.max_len, self.stride))

    def loss(self, model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        """Return the mean of the losses of start and end."""
        starts, ends = _get_logits(model, forward(model, batch))
        if "attention_mask" in batch:
            # Without this the loss of a sequence would depend on the padding of its batch.
            is_padding = batch["attention_mask"].to(starts.device) == 0
            starts, ends = starts.masked_fill(is_padding, -torch.inf), ends.masked_fill(is_padding, -torch.inf)
        first = F.cross_entropy(starts.float(), batch["start_positions"].to(starts.device))
        last = F.cross_entropy(ends.float(), batch["end_positions"].to(ends.device))
        return add_penalty(model, (first + last) / 2)

    def predict(self, model: nn.Module, batches: Iterable[Batch]) -> dict[str, SquadAnswer]:
        """Return the answer to every question with a window in the batches, whose order does not matter."""
        parts: dict[str, list[tuple[ContextWindow, Logits, Logits]]] = {}
        for batch in check_batches(batches):
            with evaluation_mode(model):
                output = forward(model, batch)
            starts, ends = (logits.double().cpu() for logits in _get_logits(model, output))
            check_finite(starts, [feature.key for feature in batch.features])
            for row, window in enumerate(batch.features):
                assert isinstance(window, ContextWindow)
                n = len(window.begins)
                parts.setdefault(window.key, []).append((window, starts[row, :n].numpy(), ends[row, :n].numpy()))
        threshold = self.null_threshold.value if self.has_null else None
        return {key: self.search.search_question(windows, threshold) for key, windows in parts.items()}

    def score(self, predictions: Mapping[str, SquadAnswer | str], examples: Sequence[SquadQuestion]) -> Scores:
        """Return the official figures; v1.1 counts a question without a prediction as wrong, v2.0 refuses."""
        if self.has_null:
            self.null_threshold.check_disjoint(examples)
        texts = {key: given if isinstance(given, str) else given.text for key, given in predictions.items()}
        check_unique_ids(examples)
        _check_known(texts, examples)
        golds = {question.id: question.answers for question in examples}
        scores = self.make_scores(score_v2(golds, texts) if self.has_null else score_v1(golds, texts), texts)
        return replace(scores, clusters=[question.cluster for question in examples])

    def make_scores(self, official: SquadFigures, given: Mapping[str, str]) -> Scores:
        """Return official figures as scores of this task."""
        ids = list(official.exact)
        by_name = {"exact": official.exact, "f1": official.f1}
        in_percent = {name: 100.0 * np.array([values[key] for key in ids]) for name, values in by_name.items()}
        missing = [key for key in ids if key not in given]
        return Scores(self.name, self.primary, official.figures, ids, in_percent, missing=missing, ceiling=self.ceiling)

    def tuned(self, answers: Mapping[str, SquadAnswer], held_out: Sequence[SquadQuestion]) -> Self:
        """Return this task with a null threshold tuned on questions held out of the training set."""
        return replace(self, null_threshold=tune_threshold(held_out, answers))

    def oracle(self, examples: Sequence[SquadQuestion], tokenizer: Any) -> dict[str, SquadAnswer]:
        """Answer from logits that point at gold answers: errors are those of windows, offsets or length."""
        windows = make_windows(examples, tokenizer, self.max_len, self.stride)
        return answer_from_golds(examples, windows, self.search, self.null_threshold.value if self.has_null else None)


def _check_known(predictions: Mapping[str, str], examples: Sequence[SquadQuestion]) -> None:
    if not predictions or any(question.id in predictions for question in examples):
        return
    raise TaskError(
        f"none of {len(predictions)} predictions, such as '{next(iter(predictions))}', is for one of the "
        f"{len(examples)} questions, such as '{examples[0].id}' ({examples[0].place}); they belong to other data"
    )


def _get_logits(model: nn.Module, output: Any) -> tuple[Tensor, Tensor]:
    starts, ends = getattr(output, "start_logits", None), getattr(output, "end_logits", None)
    if not isinstance(starts, Tensor) or not isinstance(ends, Tensor):
        raise TaskError(f"{type(model).__name__} gives no start and end logits; SQuAD needs a model of {HEAD}")
    return starts, ends
