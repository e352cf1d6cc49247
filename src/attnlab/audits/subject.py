"""A mechanism under audit: random inputs for it, and its computation through any kernel, in any mode."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor

from attnlab.kernels.attend import attend, initial_values, prepare
from attnlab.kernels.call import Request
from attnlab.kernels.choose import ORDER
from attnlab.mechanisms import Mechanism

from .finding import Part

Inputs = dict[str, Tensor]
"""What goes into one attention: q, k and v, and where a values stage may read them, x and first. [b h n d] each."""

NUM_HEADS, HEAD_DIM = 2, 8
SHORT = 24
"""A length at which every pair of positions is looked at."""

LONG = 150
"""A length of more than one tile, where only the borders are looked at."""


@dataclass(frozen=True)
class Mode:
    """How attention is run: by which kernel, causal or not, in which precision, and whether as in training."""

    causal: bool
    kernel: str = "auto"
    dtype: torch.dtype = torch.float32
    dropout: float = 0.0
    training: bool = False

    def __str__(self) -> str:
        precision = str(self.dtype).removeprefix("torch.")
        words = ["causal" if self.causal else "not causal", self.kernel, precision]
        if self.training:
            words.append(f"training with dropout {self.dropout:g}" if self.dropout else "training")
        return ", ".join(words)


@dataclass(frozen=True)
class Subject:
    """A mechanism with the ways it is to be asked about: causal, not causal, or both."""

    mechanism: Mechanism
    causalities: tuple[bool, ...] = (False, True)
    seed: int = 0
    parameters: Mapping[str, Tensor] = field(default_factory=dict)

    @classmethod
    def of(cls, mechanism: Mechanism, causal: bool | None, seed: int = 0) -> Subject:
        """Put a mechanism under audit with the initial values of what it learns."""
        learned = initial_values(mechanism, NUM_HEADS, HEAD_DIM, HEAD_DIM, seed)
        return cls(mechanism, (False, True) if causal is None else (causal,), seed, learned)

    @property
    def title(self) -> str:
        """The mechanism's line."""
        return str(self.mechanism)

    @property
    def causal(self) -> bool | None:
        """The causality that was asked for; None where it is both."""
        return self.causalities[0] if len(self.causalities) == 1 else None

    def moved(self) -> Subject:
        """Return the subject as training would leave it: what it learns a little off where it started.

        A stage that starts at 0 may leak, or get no gradient, only later.
        """
        draw = torch.Generator().manual_seed(self.seed + 1)
        learned = {name: p + 0.1 * torch.randn(p.shape, generator=draw) for name, p in self.parameters.items()}
        return dataclasses.replace(self, parameters=learned)

    def inputs(self, batch: int, length: int, dtype: torch.dtype = torch.float32, salt: int = 0) -> Inputs:
        """Draw inputs, at every call the same."""
        draw = torch.Generator().manual_seed(1000 * self.seed + salt)
        names = ("q", "k", "v", "x", "first") if self.mechanism.values else ("q", "k", "v")
        shape = (batch, NUM_HEADS, length, HEAD_DIM)
        return {name: torch.randn(shape, generator=draw, dtype=torch.float64).to(dtype) for name in names}

    def attend(self, inputs: Inputs, mode: Mode, mask: Tensor | None = None) -> Tensor:
        """Compute the mechanism; dropout takes the same draw at every call."""
        return attend(
            inputs["q"], inputs["k"], inputs["v"], self.mechanism,
            causal=mode.causal, mask=mask, kernel=mode.kernel,
            parameters={name: p.to(mode.dtype) for name, p in self.parameters.items()},
            dropout=mode.dropout, training=mode.training, x=inputs.get("x"), first=inputs.get("first"),
            generator=torch.Generator().manual_seed(self.seed),
        )  # fmt: skip

    def projected(self, inputs: Inputs) -> tuple[Subject, Inputs]:
        """Let the values stages act, and return what is left to compute, which a cache can hold."""
        q, k, v = inputs["q"], inputs["k"], inputs["v"]
        call, _ = prepare(
            q, k, v, self.mechanism, False, None, None, self.parameters, inputs.get("x"), inputs.get("first")
        )
        bare = dataclasses.replace(self.mechanism, values=())
        kept = bare.parameters(NUM_HEADS, HEAD_DIM, HEAD_DIM)
        learned = {name: p for name, p in self.parameters.items() if name in kept}
        subject = dataclasses.replace(self, mechanism=bare, parameters=learned)
        return subject, {"q": call.q, "k": call.k, "v": call.v}

    def kernels(self, length: int, mode: Mode, mask: str = "none") -> list[str]:
        """Name every kernel that can compute the mechanism like this."""
        request = Request(
            self.mechanism, length, length, HEAD_DIM, HEAD_DIM, NUM_HEADS, 1, mode.causal,
            mask, mode.dropout, mode.dtype,  # type: ignore[arg-type]
        )  # fmt: skip
        return [kernel.NAME for kernel in ORDER if kernel.refusal(request) is None]

    def modes(self, dtype: torch.dtype = torch.float32, mask: str = "none") -> Iterator[Mode]:
        """Yield every causality with every kernel that can compute it, in one precision."""
        for causal in self.causalities:
            mode = Mode(causal, dtype=dtype)
            for kernel in self.kernels(LONG, mode, mask):
                yield dataclasses.replace(mode, kernel=kernel)

    def blame(self, parts: Iterable[Part], otherwise: str) -> str:
        """Say where to look: at the kernels that fail where another does not, else at the mask, else `otherwise`."""
        trials = [part for part in parts if part.kernel]
        bad = {part.kernel for part in trials if not part.passed}
        if {part.kernel for part in trials} - bad:
            return f"kernel {', '.join(sorted(bad))}: other kernels compute the same mechanism without this fault"
        mask = self.mechanism.mask
        return {
            "after": f"'{mask}': the weights are normalised over all tokens, and only then are later ones set to 0",
            "zero": f"'{mask}': a later token's score becomes 0, and a score of 0 still has weight",
        }.get(mask.where, otherwise)


@contextmanager
def without_onednn() -> Iterator[None]:
    """Compute by torch's own loops: on some virtual machines oneDNN's bf16 products end the process."""
    before = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(before)


def peak(tensor: Tensor) -> float:
    """Return the largest magnitude in a tensor; not a number if any is."""
    return float(tensor.detach().abs().max()) if tensor.numel() else 0.0


def noise(out: Tensor, roundings: float = 32) -> float:
    """Return what rounding alone may change in a result of this dtype and size."""
    finite = torch.nan_to_num(out.detach().double(), posinf=0, neginf=0)
    return roundings * torch.finfo(out.dtype).eps * max(peak(finite), 1e-30)
