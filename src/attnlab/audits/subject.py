"""A mechanism under audit: random inputs for it, and its computation through any kernel, in any mode."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor

from attnlab.kernels.attend import attend, initial_values, prepare
from attnlab.kernels.call import MaskKind, Request
from attnlab.kernels.choose import ORDER
from attnlab.mechanisms import Mechanism

from .finding import FindingPart

Inputs = dict[str, Tensor]
"""What goes into one attention: q, k and v, and where a values stage may read them, x and first. [b h n d] each."""

NUM_HEADS, HEAD_DIM = 2, 8
SHORT = 24
"""A length at which every pair of positions is looked at."""

ROUNDINGS = {torch.float64: 1e4, torch.float32: 1e3}
"""How many roundings two ways to the same result may differ by: far above noise, far below any dependence."""

LONG = 150
"""A length of more than one tile, where only the borders are looked at."""

MANY_HEADS, SEVERAL = 16, 2
"""Heads and sequences that at this length no kernel computes in one piece: neither queries, heads nor sequences."""


@dataclass(frozen=True)
class Mode:
    """How attention is run: by which kernel, causal or not, in which precision, under which kind of mask besides, and
    whether as in training."""

    causal: bool
    kernel: str = "auto"
    dtype: torch.dtype = torch.float32
    mask: MaskKind = "none"
    dropout: float = 0.0
    training: bool = False

    def __str__(self) -> str:
        precision = str(self.dtype).removeprefix("torch.")
        words = ["causal" if self.causal else "not causal", self.kernel, precision]
        words += {"none": [], "keys": ["with padding"], "pairs": ["with a mask of pairs"]}[self.mask]
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
    head_dim: int = HEAD_DIM
    value_dim: int = HEAD_DIM
    num_heads: int = NUM_HEADS

    @classmethod
    def of(cls, mechanism: Mechanism, causal: bool | None, seed: int = 0) -> Subject:
        """Put a mechanism under audit with the initial values of what it learns."""
        return cls(mechanism, (False, True) if causal is None else (causal,), seed).sized(HEAD_DIM, HEAD_DIM)

    def sized(self, head_dim: int, value_dim: int, num_heads: int = NUM_HEADS) -> Subject:
        """Return the subject at other widths, with parameters at their initial values."""
        learned = initial_values(self.mechanism, num_heads, head_dim, value_dim, self.seed)
        return dataclasses.replace(
            self, parameters=learned, head_dim=head_dim, value_dim=value_dim, num_heads=num_heads
        )

    @property
    def split(self) -> Subject:
        """The subject with as many heads as make every kernel split a long problem."""
        return self.sized(self.head_dim, self.value_dim, MANY_HEADS)

    def stripped(self, **stages: object) -> Subject:
        """Return the subject with some slots of its mechanism changed, and the parameters that are left."""
        bare = dataclasses.replace(self.mechanism, **stages)  # type: ignore[arg-type]
        kept = bare.parameters(self.num_heads, self.head_dim, self.value_dim)
        learned = {name: p for name, p in self.parameters.items() if name in kept}
        return dataclasses.replace(self, mechanism=bare, parameters=learned)

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

        A stage that starts at 0 may leak, or get no gradient, only later. A parameter moves by a tenth of its size,
        since it may have a range of its own.
        """
        draw = torch.Generator().manual_seed(self.seed + 1)
        learned = {
            name: p + 0.1 * torch.where(p == 0, 1, p.abs()) * torch.randn(p.shape, generator=draw).clamp(-3, 3)
            for name, p in self.parameters.items()
        }
        return dataclasses.replace(self, parameters=learned)

    def inputs(self, batch: int, length: int, dtype: torch.dtype = torch.float32, salt: int = 0) -> Inputs:
        """Draw inputs, at every call the same."""
        draw = torch.Generator().manual_seed(1000 * self.seed + salt)
        names = ("q", "k", "v", "x", "first") if self.mechanism.values else ("q", "k", "v")
        widths = {"q": self.head_dim, "k": self.head_dim}
        return {
            name: torch.randn(
                batch, self.num_heads, length, widths.get(name, self.value_dim), generator=draw, dtype=torch.float64
            ).to(dtype)
            for name in names
        }

    def attend(self, inputs: Inputs, mode: Mode, mask: Tensor | None = None, positions: Tensor | None = None) -> Tensor:
        """Compute the mechanism; dropout, and a stage that draws by itself, take the same draw at every call.

        mask: in place of the one that the mode's kind of mask draws. positions: of the keys; 0, 1, … if left out.
        """
        if mask is None and mode.mask != "none":
            mask = drawn_mask(mode.mask, inputs["q"].shape[2], inputs["k"].shape[2])
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            return attend(
                inputs["q"], inputs["k"], inputs["v"], self.mechanism,
                causal=mode.causal, mask=mask, kernel=mode.kernel,
                parameters={name: p.to(mode.dtype) for name, p in self.parameters.items()},
                dropout=mode.dropout, training=mode.training, x=inputs.get("x"), first=inputs.get("first"),
                positions=positions, generator=torch.Generator().manual_seed(self.seed),
            )  # fmt: skip

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        """Compute the scores of all pairs, none of them forbidden."""
        score = self.mechanism.score
        learned = {name: p.to(q.dtype) for name, p in self.parameters.items()}
        call, _ = prepare(q, k, k, dataclasses.replace(self.mechanism, values=()))
        return score(q, k, self.mechanism.params_of(score, learned), **call.needs_of(score, None))

    def projected(self, inputs: Inputs) -> tuple[Subject, Inputs]:
        """Let the values stages act, and return what is left to compute, which a cache can hold."""
        call, _ = prepare(
            inputs["q"], inputs["k"], inputs["v"], self.mechanism, parameters=self.parameters,
            x=inputs.get("x"), first=inputs.get("first"),
        )  # fmt: skip
        return self.stripped(values=()), {"q": call.q, "k": call.k, "v": call.v}

    def kernels(self, length: int, mode: Mode) -> list[str]:
        """Name every kernel that can compute the mechanism like this."""
        # Tokens that are dropped are a mask of keys.
        mask: MaskKind = (
            "keys" if mode.mask == "none" and mode.training and self.mechanism.drop is not None else mode.mask
        )
        request = Request(
            self.mechanism, length, length, self.head_dim, self.value_dim, self.num_heads, 1, mode.causal,
            mask, mode.dropout, mode.dtype,
        )  # fmt: skip
        return [kernel.NAME for kernel in ORDER if kernel.refusal(request) is None]

    def modes(self, *likes: Mode) -> Iterator[Mode]:
        """Yield every causality with every kernel that can compute it, otherwise like the modes given."""
        for like in likes or (Mode(False),):
            for causal in self.causalities:
                mode = dataclasses.replace(like, causal=causal)
                for kernel in self.kernels(LONG, mode):
                    yield dataclasses.replace(mode, kernel=kernel)

    def blame(self, parts: Iterable[FindingPart], otherwise: str) -> str:
        """Say where to look: at the kernels that fail where another does not, else at the mask, else `otherwise`."""
        trials = [part for part in parts if part.kernel]
        # Only kernels that were tried in the same way say anything about each other.
        sound = {part.situation for part in trials if part.passed}
        bad = {part.kernel for part in trials if not part.passed and part.situation in sound}
        if bad:
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


def drawn_mask(kind: str, num_queries: int, num_keys: int) -> Tensor:
    """Draw which keys may be seen, by all queries alike or by each apart; the first always, so that no row is blind."""
    draw = torch.Generator().manual_seed(9)
    allowed = torch.rand(1, 1, 1 if kind == "keys" else num_queries, num_keys, generator=draw) < 0.8
    allowed[..., 0] = True
    return allowed


def peak(tensor: Tensor) -> float:
    """Return the largest magnitude in a tensor; not a number if any is."""
    return float(tensor.detach().abs().max()) if tensor.numel() else 0.0


def largest(sizes: Iterable[float]) -> float:
    """Return the largest of some sizes, 0 where there are none; one that is not a number is larger than any."""
    return max((torch.inf if size != size else size for size in sizes), default=0.0)


def noise(out: Tensor, roundings: float = 32) -> float:
    """Return what rounding alone may change in a result of this dtype and size."""
    finite = torch.nan_to_num(out.detach().double(), posinf=0, neginf=0)
    return roundings * torch.finfo(out.dtype).eps * max(peak(finite), 1e-30)
