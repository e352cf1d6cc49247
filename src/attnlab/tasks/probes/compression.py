"""Compression as a task (MAD, Poli et al. 2024, arXiv:2403.17844): can one state hold a whole sequence?

MAD decodes the state of the last token with an MLP that also receives the position. Here the head of a sequence
classifier decodes it: a linear layer with a logit for every position and token. It receives no other state.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from ..batch import IGNORED, Feature
from ..floors import choose_best, score_sequence_strategies
from ..floors.sequences import MAJORITY
from ..objective import add_penalty, compute_logits, compute_token_losses, evaluation_mode
from ..scores import Reference
from .task import ProbeTask


@dataclass(frozen=True)
class CompressionTask(ProbeTask):
    """Predict every token of a sequence from the state of its last one."""

    head: str = "AutoModelForSequenceClassification"

    @property
    def head_settings(self) -> Mapping[str, Any]:
        """A logit for every token at every position. Models search for the pad token, which occurs in no sequence."""
        labels = {"num_labels": (self.length - 1) * self.vocab, "problem_type": "single_label_classification"}
        return {"vocab_size": self.vocab + 1, "pad_token_id": self.vocab, **labels}

    def floor(self, dev: Any, train_features: Iterable[Feature] = ()) -> Reference | None:
        """Return the accuracy of the commonest token; strategies that read the sequence are not trivial here."""
        if self.primary != "accuracy":
            return None
        sequences = [(example.input_ids, example.labels) for example in dev.examples]
        return choose_best({MAJORITY: score_sequence_strategies(sequences)[MAJORITY]}, higher_is_better=True)

    def loss(self, model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        """Return the mean loss over all tokens."""
        logits, targets = self._compute_logits(model, batch)
        return add_penalty(model, F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten().to(logits.device)))

    def _compute_losses(self, model: nn.Module, batch: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        with evaluation_mode(model):
            logits, targets = self._compute_logits(model, batch)
            return compute_token_losses(logits, targets), logits.argmax(-1).cpu() == targets.cpu()

    def _compute_logits(self, model: nn.Module, batch: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Return logits [b, n, vocab] and target tokens [b, n]; the last position has no label."""
        inputs = {name: tensor for name, tensor in batch.items() if name != "labels"}
        targets = batch["labels"][:, :-1]
        assert not bool((targets == IGNORED).any()), "every token but the last has a label"
        return compute_logits(model, inputs).unflatten(-1, (self.length - 1, self.vocab)), targets
