"""The audit of an arm as it is installed in a size's model: what is sound alone may leak through the model's mask."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from transformers import PreTrainedModel

from attnlab.audits import audit
from attnlab.errors import TrainingError
from attnlab.training import Start
from attnlab.training.weights import build_model, quiet
from attnlab.training.weights import config_of as model_config

from ..file.design import Arm, Size
from ..file.overrides import config_of
from .audit_keys import MARK
from .identity import contents_of_size, contents_of_stages

CAUSAL = ("causal leak", "prefix consistency")
OTHERWISE = ("padding and batch invariance",)
"""What is asked of a model that reads forwards, and of any other, which has no future to leak."""
MANY = 20_000_000
"""Weights from which on a model is audited with FEW layers: all of its layers are the same code."""
FEW = 2
SEED = 0


def marked(key: str, line: str, plugins: Sequence[str]) -> str:
    """Return what the ledger knows an audit by: with a hash of their files, where a line has stages of one's own."""
    own = contents_of_stages(line, plugins)
    if not own:
        return key
    return f"{key}{MARK}{hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()[:8]})"


class Alphabet:
    """Stands in for a tokenizer where a model is built to be shown random tokens."""

    pad_token_id, bos_token_id, eos_token_id = 0, 1, 2

    def __len__(self) -> int:
        return 128


@dataclass(frozen=True)
class Installed:
    """An arm in a size, with the head of a task."""

    arm: Arm
    size_name: str
    size: Size
    task: Any

    @property
    def start(self) -> Start:
        """What its runs start from."""
        return self.size.start(config_of(self.arm), self.line)

    @property
    def line(self) -> str:
        """The arm's mechanism in a model of this size."""
        return self.arm.line(self.size_name)

    @property
    def key(self) -> str:
        """What the ledger knows its audit by: the line, the size, and a hash of what the size is."""
        contents = contents_of_size(self.size)
        checkpoint = contents.get("checkpoint", self.size.checkpoint)
        content = [self.size.architecture, checkpoint, dict(self.start.config), self.task.head]
        digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:8]
        return f"{self.line} in {self.size_name} ({digest})"

    def audit(self, is_causal: bool) -> tuple[bool, list[Mapping[str, Any]]]:
        """Build the model and audit it; return whether it passed, and what was found, first what was audited."""
        with quiet():
            model, depth = self.build()
        found = audit(model, causal=is_causal, checks=CAUSAL if is_causal else OTHERWISE)
        own = depth_of(model)
        cut = f"; {own} of its {depth} layers, which are the same code" if own != depth else ""
        subject = {
            "name": "installed model", "kind": "installed_model",
            "verdict": "reported", "passed": True, "judged": False,
            "sentence": f"Audited was {found.subject}{cut}.", "data": {"layers": own, "layers_of_the_size": depth},
        }  # fmt: skip
        return found.passed, [subject, *(one.record() for one in found.findings.values())]

    def build(self) -> tuple[PreTrainedModel, int | None]:
        """Build the model with the mechanism in it, a big one with few layers; return how many layers the size has."""
        # A probe's tokens are the vocabulary that its head says.
        tokenizer = None if "vocab_size" in self.task.head_settings else Alphabet()
        if self.start.architecture is None:
            whole: PreTrainedModel | None = build_model(self.start, self.task, None, SEED, str)
            config: Any = whole.config  # type: ignore[union-attr]
        else:
            whole, config = None, model_config(self.start.architecture, self.start, self.task, tokenizer)
        depth = layers_in(config)
        if depth is not None and depth > FEW and is_big(config) and "layers=" not in self.line:
            shallow = self.start.replace(config={**self.start.config, "num_hidden_layers": FEW})
            try:
                return build_model(shallow, self.task, tokenizer, SEED, str), depth
            except TrainingError:
                pass  # a config that lists its layers one by one has no fewer: the record then says nothing of a cut
        if whole is None:
            whole = build_model(self.start, self.task, tokenizer, SEED, str)
        return whole, depth


def layers_in(config: Any) -> int | None:
    """Return how many layers a config says it has."""
    found = getattr(config, "num_hidden_layers", None)
    return found if isinstance(found, int) else None


def depth_of(model: PreTrainedModel) -> int | None:
    """Return how many layers a model has."""
    return layers_in(model.config)


def is_big(config: Any) -> bool:
    """Tell whether the layers of a config have many weights, as transformers of its width usually do."""
    width = getattr(config, "hidden_size", None)
    return isinstance(width, int) and 12 * width**2 * (layers_in(config) or 0) > MANY
