"""A way to tune a model, as data: which parts of it train, and the sizes of what is added for that."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from attnlab.errors import TrainingError, closest

Mode = Literal["full", "head", "prompt", "prefix", "lora"]
MODES: tuple[Mode, ...] = get_args(Mode)


@dataclass(frozen=True)
class Tuning:
    """What trains: `full` everything, `head` the head alone, the others a frozen body with something added to it.

    length: of a prompt or a prefix, in tokens.
    rank, alpha, dropout, targets: LoRA's; without targets those that peft has for the architecture.
    """

    mode: Mode = "full"
    length: int = 128
    rank: int = 8
    alpha: float = 16.0
    dropout: float = 0.0
    targets: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            hint = closest(str(self.mode), MODES) or "."
            raise TrainingError(f"there is no mode of tuning {self.mode!r}{hint} There are: {', '.join(MODES)}")
        for name in ("length", "rank"):
            number = getattr(self, name)
            if isinstance(number, bool) or not isinstance(number, int) or number < 1:
                raise TrainingError(f"tuning: {name} is a whole number from 1 up, not {number!r}")
        if not is_number(self.alpha) or not 0 < self.alpha < math.inf:
            raise TrainingError(f"tuning: alpha is a number above 0, not {self.alpha!r}")
        if not is_number(self.dropout) or not 0 <= self.dropout < 1:
            raise TrainingError(f"tuning: dropout is a rate from 0 up to but not 1, not {self.dropout!r}")
        if not isinstance(self.targets, tuple) or not all(isinstance(t, str) and t for t in self.targets):
            raise TrainingError(
                f"tuning: targets is a tuple of the names of linear modules, such as ('query', 'value'), not "
                f"{self.targets!r}"
            )


def is_number(value: object) -> bool:
    """Tell whether a value is a number and not a truth."""
    return isinstance(value, int | float) and not isinstance(value, bool)
