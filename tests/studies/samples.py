"""A small study as text and as plain data, with changes by their paths."""

from __future__ import annotations

import tomllib
from typing import Any

from attnlab.studies.file.overrides import set_value
from attnlab.studies.study import Study

STUDY = """\
name = "small"
question = "does a bypass help recall?"
baseline = "dot"
seeds = [1, 2]

[arms]
dot = "dot | softmax"
bypass = "dot | softmax | bypass(alpha=0.5)"
slow = { mechanism = "cosine | softmax", set = { "optimizer.lr" = 1e-3 } }

[sizes.tiny]
architecture = "gpt2"
config = { n_layer = 1, n_embd = 16, n_head = 2, n_positions = 32 }

[data.recall]
train = "embedded:mqar?vocab=32&length=24&pairs=4&examples=80"
dev = "embedded:mqar?vocab=32&length=24&pairs=4&examples=20"

[[phases]]
name = "recall"
task = "mqar"
task_settings = { vocab = 32, length = 24 }
data = "recall"
smallest = 0.02
precision = "fp32"
checkpoint_every = 2

[[phases.segments]]
steps = 4
batch = 8

[phases.optimizer]
lr = 3e-3

[budgets.smoke]
seeds = [1]
"phases.recall.segments.0.steps" = 3

[budgets.paper]
seeds = [1, 2, 3, 4, 5]
phases.recall.segments.0.steps = 9
"""


def content(**changes: Any) -> dict[str, Any]:
    """Return the study as plain data, with changes by their paths (`__` for a dot)."""
    found = tomllib.loads(STUDY)
    del found["budgets"]
    for where, value in changes.items():
        set_value(found, where.replace("__", "."), value, "a test")
    return found


def study(**changes: Any) -> Study:
    """Return the study with changes."""
    return Study.of(content(**changes))


def quiet(message: str) -> None:
    """Say nothing."""
