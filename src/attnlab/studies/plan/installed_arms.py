"""The audit of an arm installed in a model: a sound mechanism may leak through the model's mask."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from transformers import PreTrainedModel

from attnlab.audits import audit
from attnlab.errors import TrainingError
from attnlab.mechanisms import LayeredMechanism, parse_line
from attnlab.training import Start
from attnlab.training.job.weights import build_model, make_config, silence_transformers
from attnlab.training.loop.stopping import StopRequest

from ..file.design import Arm, Size
from .audit_keys import MARK
from .identity import hash_size, hash_stages

CAUSAL = ("causal leak", "prefix consistency")
OTHERWISE = ("padding and batch invariance",)
"""The checks of a causal model, and those of any other."""
MANY = 20_000_000
"""A model with more weights in its layers is audited with FEW of them: all are the same code."""
FEW = 2
SEED = 0


def mark_key(key: str, line: str, plugins: Sequence[str]) -> str:
    """Return the key of an audit in the ledger, with a hash of the plugins if a line has stages from them."""
    hashes = hash_stages(line, plugins)
    return f"{key}{MARK}{_hash_short(hashes)})" if hashes else key


class _Alphabet:
    """Replaces a tokenizer if a model is built for random tokens."""

    pad_token_id, bos_token_id, eos_token_id = 0, 1, 2

    def __len__(self) -> int:
        return 128


@dataclass(frozen=True)
class InstalledArm:
    """An arm in the model of a size, with the head of a task."""

    arm: Arm
    size_name: str
    size: Size
    task: Any

    @property
    def start(self) -> Start:
        """What the runs of the arm start from."""
        return self.size.start(self.arm.config, self.line)

    @property
    def line(self) -> str:
        """The arm's mechanism in a model of this size."""
        return self.arm.line(self.size_name)

    @property
    def key(self) -> str:
        """The key of its audit in the ledger: the line, the size, and a hash of the model."""
        checkpoint = hash_size(self.size).get("checkpoint", self.size.checkpoint)
        content = [self.size.architecture, checkpoint, dict(self.start.config), self.task.head]
        return f"{self.line} in {self.size_name} ({_hash_short(content)})"

    def audit(self, is_causal: bool, stop: StopRequest | None = None) -> tuple[bool, list[Mapping[str, Any]]]:
        """Build the model and audit it; return whether it passed, and the findings, the model's description first.

        stop: a request for it raises KeyboardInterrupt before the next check.
        """
        stop = StopRequest() if stop is None else stop  # one that was not asked for yet is false
        stop.check()
        with silence_transformers():
            model, num_layers = self.build()
        result = audit(
            model, causal=is_causal, checks=CAUSAL if is_causal else OTHERWISE, progress=lambda _: stop.check()
        )
        num_audited = count_layers(model.config)
        depth = f"{num_audited} of its {num_layers} layers, which are the same code"
        cut = f"; {depth}" if num_audited != num_layers else ""
        if self.start.architecture is not None and "vocab_size" not in self.task.head_settings:
            cut += f"; its vocabulary has {len(_Alphabet())} tokens, and that of the runs another number"
        subject = {
            "name": "installed model", "kind": "installed_model", "verdict": "reported", "passed": True,
            "judged": False, "sentence": f"Audited was {result.subject}{cut}.",
            "data": {"layers": num_audited, "layers_of_the_size": num_layers},
        }  # fmt: skip
        return result.passed, [subject, *(finding.record() for finding in result.findings.values())]

    def build(self) -> tuple[PreTrainedModel, int | None]:
        """Build the model with the mechanism, a large one with few layers; return the number of layers of the size."""
        # The head of a probe sets the vocabulary.
        tokenizer = None if "vocab_size" in self.task.head_settings else _Alphabet()
        if self.start.architecture is None:
            whole: PreTrainedModel | None = build_model(self.start, self.task, None, SEED, str)
            config: Any = whole.config  # type: ignore[union-attr]
        else:
            whole, config = None, make_config(self.start.architecture, self.start, self.task, tokenizer)
        num_layers, width = count_layers(config), getattr(config, "hidden_size", None)
        num_weights = 12 * width**2 * (num_layers or 0) if isinstance(width, int) else 0
        if num_layers is not None and num_layers > FEW and num_weights > MANY and not _names_layers(self.line):
            shallow = self.start.replace(config={**self.start.config, "num_hidden_layers": FEW})
            try:
                return build_model(shallow, self.task, tokenizer, SEED, str), num_layers
            except TrainingError:
                pass  # a config that lists its layers one by one cannot have fewer
        if whole is None:
            whole = build_model(self.start, self.task, tokenizer, SEED, str)
        return whole, num_layers


def _names_layers(line: str) -> bool:
    """Tell whether layers of a model differ in their mechanism."""
    return "layers=" in line or isinstance(parse_line(line), LayeredMechanism)


def count_layers(config: Any) -> int | None:
    """Return the number of layers of a config, None if it has no such field."""
    number = getattr(config, "num_hidden_layers", None)
    return number if isinstance(number, int) else None


def _hash_short(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:8]
