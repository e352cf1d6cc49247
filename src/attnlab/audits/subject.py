"""A mechanism under audit: random inputs for it, and its computation with any kernel and settings."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Self

import torch
from torch import Tensor

from attnlab.kernels.attend import attend
from attnlab.kernels.call import Call, MaskKind, Request
from attnlab.kernels.choose import list_kernels
from attnlab.kernels.parameters import initial_values
from attnlab.kernels.prepare import prepare
from attnlab.mechanisms import Mechanism
from attnlab.mechanisms.position_schemes import ModelPositions

Inputs = dict[str, Tensor]
"""The inputs of one attention: q, k and v; if there are values stages also x and first; x if a stage needs it.
[b h n d] each. Token ids are read off x (`read_tokens`)."""

NUM_HEADS, HEAD_DIM = 2, 8
TOKEN_BITS = 3
VOCAB_SIZE = 2**TOKEN_BITS
SHORT = 24
"""A length at which every pair of positions is checked."""

ROUNDINGS = {torch.float64: 1e4, torch.float32: 1e3}
"""How many roundings two ways to the same result may differ by: far above noise, far below any dependence."""

LONG = 150
"""A length of more than one tile, at which only the borders are checked."""

DIRECTIONS = (0, 1, -1)
"""The directions in which parameters are moved: either way, or if that leaves their range, only up or only down."""

MANY_HEADS = 16
"""A number of heads for which every kernel splits queries, heads and sequences at length LONG."""


@dataclass(frozen=True)
class Mode:
    """The settings of a call: causal or not, kernel, precision, kind of mask, dropout, training or evaluation."""

    causal: bool
    kernel: str = "auto"
    dtype: torch.dtype = torch.float32
    mask: MaskKind = "none"
    dropout: float = 0.0
    training: bool = False

    def __str__(self) -> str:
        precision = str(self.dtype).removeprefix("torch.")
        words = ["causal" if self.causal else "not causal", f"kernel {self.kernel}", precision]
        words += {"none": [], "keys": ["with padding"], "pairs": ["with a mask of pairs"]}[self.mask]
        if self.training:
            words.append(f"training with dropout {self.dropout:g}" if self.dropout else "training")
        return ", ".join(words)


@dataclass(frozen=True)
class Subject:
    """A mechanism under audit; `causalities` says whether with a causal mask, without, or both.

    direction: where the learned parameters are moved from their initial values, as in `move_values`; None: not at all.
    """

    mechanism: Mechanism
    causalities: tuple[bool, ...] = (False, True)
    seed: int = 0
    parameters: Mapping[str, Tensor] = field(default_factory=dict)
    head_dim: int = HEAD_DIM
    value_dim: int = HEAD_DIM
    num_heads: int = NUM_HEADS
    direction: int | None = None

    @classmethod
    def create(cls, mechanism: Mechanism, causal: bool | None, seed: int = 0) -> Self:
        """Make the subject of an audit, with learned parameters at their initial values."""
        return cls(mechanism, (False, True) if causal is None else (causal,), seed).resize()

    def resize(self, head_dim: int = HEAD_DIM, value_dim: int = HEAD_DIM, num_heads: int = NUM_HEADS) -> Self:
        """Return the subject with other sizes, with parameters at their initial values, or moved from these."""
        learned = initial_values(self.mechanism, num_heads, head_dim, value_dim, self.seed, vocab_size=VOCAB_SIZE)
        resized = dataclasses.replace(
            self, parameters=learned, head_dim=head_dim, value_dim=value_dim, num_heads=num_heads
        )
        return resized if self.direction is None else resized._move(self.direction)

    def replace_stages(self, **stages: object) -> Self:
        """Return the subject with some slots of its mechanism changed, and the parameters that remain."""
        changed = dataclasses.replace(self.mechanism, **stages)  # type: ignore[arg-type]
        names = changed.parameters(self.num_heads, self.head_dim, self.value_dim)
        learned = {name: p for name, p in self.parameters.items() if name in names}
        return dataclasses.replace(self, mechanism=changed, parameters=learned)

    @property
    def title(self) -> str:
        """The mechanism's line."""
        return str(self.mechanism)

    @property
    def causal(self) -> bool | None:
        """The causality that was requested; None for both."""
        return self.causalities[0] if len(self.causalities) == 1 else None

    @property
    def has_parameters(self) -> bool:
        """Whether the mechanism has learned parameters."""
        return bool(self.parameters)

    @property
    def is_moved(self) -> bool:
        """Whether the learned parameters are away from their initial values."""
        return self.direction is not None

    def move_parameters(self) -> Self:
        """Return the subject as after some training, with learned parameters away from their initial values.

        A stage that starts at 0 may leak, or get no gradient, only later. The subject is returned as it is if its
        parameters are moved already, or if moved ones give numbers that are not finite in every direction.
        """
        if self.is_moved or not self.parameters:
            return self
        moved = (self._move(direction) for direction in DIRECTIONS)
        return next((subject for subject in moved if subject._is_finite()), self)

    def restore_parameters(self) -> Self:
        """Return the subject with learned parameters at their initial values."""
        return dataclasses.replace(self, direction=None).resize(self.head_dim, self.value_dim, self.num_heads)

    def _move(self, direction: int) -> Self:
        draw = torch.Generator().manual_seed(self.seed + 1)
        learned = {name: move_values(p, draw, direction) for name, p in self.parameters.items()}
        return dataclasses.replace(self, parameters=learned, direction=direction)

    def _is_finite(self) -> bool:
        """Tell whether the outputs for random inputs are finite; what raises an exception fails in each check."""
        try:
            with torch.no_grad():
                out = self.attend(self.inputs(1, SHORT), Mode(self.causalities[-1], "reference"))
        except Exception:  # a stage of the user may raise anything
            return True
        return bool(out.isfinite().all())

    @contextmanager
    def moved(self) -> Iterator[Self]:
        """Give a check the subject with its parameters moved, as `ModelSubject.moved` does for a model."""
        yield self.move_parameters()

    def cast_parameters(self, dtype: torch.dtype) -> dict[str, Tensor]:
        """Return the learned parameters in a precision."""
        return {name: p.to(dtype) for name, p in self.parameters.items()}

    def inputs(self, batch: int, length: int, dtype: torch.dtype = torch.float32, salt: int = 0) -> Inputs:
        """Draw inputs, the same in every call with the same arguments."""
        draw = torch.Generator().manual_seed(1000 * self.seed + salt)
        widths = {"v": self.value_dim, "first": self.value_dim}
        names = list_inputs(self.mechanism)
        shapes = {name: (batch, self.num_heads, length, widths.get(name, self.head_dim)) for name in names}
        return {name: torch.randn(s, generator=draw, dtype=torch.float64).to(dtype) for name, s in shapes.items()}

    def attend(self, inputs: Inputs, mode: Mode, mask: Tensor | None = None, positions: Tensor | None = None) -> Tensor:
        """Compute the mechanism; dropout, and a stage that draws random numbers, draw the same in every call.

        mask: used instead of a random one of the mode's kind. positions: of the keys; 0, 1, … if omitted.
        """
        if mask is None and mode.mask != "none":
            mask = draw_mask(mode.mask, inputs["q"].shape[2], inputs["k"].shape[2])
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            return attend(
                inputs["q"], inputs["k"], inputs["v"], self.mechanism, causal=mode.causal, mask=mask,
                kernel=mode.kernel, parameters=self.cast_parameters(mode.dtype),
                dropout=mode.dropout, training=mode.training, x=inputs.get("x"), first=inputs.get("first"),
                tokens=self.read_tokens(inputs), positions=positions,
                generator=torch.Generator().manual_seed(self.seed),
            )  # fmt: skip

    def read_tokens(self, inputs: Inputs) -> Tensor | None:
        """Return token ids [b n] if a stage needs them: the signs of x, so that what changes a token changes its id."""
        if not self.mechanism.find_stages_needing("tokens"):
            return None
        return read_signs(inputs["x"])

    def prepare(self, inputs: Inputs, mode: Mode) -> tuple[Call, int]:
        """Prepare the call that a mode makes of these inputs."""
        return prepare(
            inputs["q"], inputs["k"], inputs["v"], self.mechanism, causal=mode.causal,
            parameters=self.cast_parameters(mode.dtype), x=inputs.get("x"), first=inputs.get("first"),
            tokens=self.read_tokens(inputs),
        )  # fmt: skip

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        """Compute the scores of all pairs, without a mask, of queries and keys as they meet."""
        score = self.mechanism.score
        inputs = self.inputs(len(q), q.shape[2], q.dtype)
        call, _ = prepare(
            q, k, k, self.mechanism, parameters=self.cast_parameters(q.dtype), x=inputs.get("x"),
            tokens=self.read_tokens(inputs),
        )  # fmt: skip
        return score(q, k, call.params_of(score), **call.gather_needs(score, None))

    def apply_projection_stages(self, inputs: Inputs, steps: Iterable[int] = ()) -> tuple[Self, Inputs]:
        """Apply what acts on a model's projections; return the subject without it and what a cache would hold.

        steps: the tokens at which a model is called again; in each call, the stages get the new tokens only.
        """
        early, late = (
            tuple(stage for stage in self.mechanism.features if stage.acts_before_positions == is_early)
            for is_early in (True, False)
        )
        projecting = self.replace_stages(
            positions=ModelPositions(), features=early, forget=None, delta=None, heads=None, mask=(), output=()
        )
        borders = [0, *steps, inputs["q"].shape[2]]
        pieces = [projecting.project(inputs, start, stop) for start, stop in pairwise(borders) if start < stop]
        held = {name: torch.cat([piece[name] for piece in pieces], 2) for name in ("q", "k", "v")}
        core = self.replace_stages(values=(), features=late)
        return core, {**held, "x": inputs["x"]} if "x" in list_inputs(core.mechanism) else held

    def project(self, inputs: Inputs, start: int, stop: int) -> Inputs:
        """Apply the stages to tokens start…stop, and to as many before them as a model projects again."""
        first = max(0, start - self.mechanism.num_earlier)
        given = {name: t[:, :, first:stop] for name, t in inputs.items()}
        call, _ = self.prepare(given, Mode(False, dtype=inputs["q"].dtype))
        return {name: t[:, :, start - first :] for name, t in (("q", call.q), ("k", call.k), ("v", call.v))}

    def list_kernels(self, length: int, mode: Mode) -> list[str]:
        """List the kernels that can compute the mechanism in a mode."""
        # Tokens that are dropped are a mask of keys.
        drops_tokens = mode.mask == "none" and mode.training and self.mechanism.drop is not None
        request = Request(
            self.mechanism, length, length, self.head_dim, self.value_dim, self.num_heads, 1, mode.causal,
            "keys" if drops_tokens else mode.mask, mode.dropout, mode.dtype,
        )  # fmt: skip
        return list_kernels(request)

    def modes(self, *likes: Mode) -> Iterator[Mode]:
        """Yield every causality with every kernel that can compute it, otherwise like the given modes."""
        for like in likes or (Mode(False),):
            for causal in self.causalities:
                mode = dataclasses.replace(like, causal=causal)
                for kernel in self.list_kernels(LONG, mode):
                    yield dataclasses.replace(mode, kernel=kernel)


def move_values(values: Tensor, draw: torch.Generator, direction: int = 0) -> Tensor:
    """Return learned parameters away from their values, by about a tenth of their size, since their range may be
    limited; only up with a direction of 1, only down with −1."""
    step = torch.randn(values.shape, generator=draw).clamp(-3, 3)
    step = (step if direction == 0 else direction * step.abs()).to(values)
    return values + 0.1 * torch.where(values == 0, 1, values.abs()) * step


def list_inputs(mechanism: Mechanism) -> list[str]:
    """List the names of the inputs that a mechanism uses."""
    names = ["q", "k", "v"]
    if mechanism.values:
        return [*names, "x", "first"]
    return [*names, "x"] if mechanism.find_stages_needing("x") else names


def read_signs(x: Tensor) -> Tensor:
    """Return an integer [b n] below VOCAB_SIZE for each token of x [b h n d]: the signs of its first channels."""
    bits = 2 ** torch.arange(TOKEN_BITS)
    return ((x.detach()[:, 0, :, :TOKEN_BITS] > 0) * bits).sum(-1)


def draw_mask(kind: str, num_queries: int, num_keys: int) -> Tensor:
    """Draw a mask of keys, the same for all queries, or of pairs; the first key is visible, so that no row is empty."""
    draw = torch.Generator().manual_seed(9)
    allowed = torch.rand(1, 1, 1 if kind == "keys" else num_queries, num_keys, generator=draw) < 0.8
    allowed[..., 0] = True
    return allowed


def compute_gradients(out: Tensor, inputs: Iterable[Tensor], cotangent: Tensor | None = None) -> list[Tensor]:
    """Return the gradients of some inputs, zeros for those that the output does not depend on."""
    targets = list(inputs)
    if not out.requires_grad:
        return [torch.zeros_like(t) for t in targets]
    gradients = torch.autograd.grad(out, targets, cotangent, allow_unused=True)
    return [torch.zeros_like(t) if g is None else g for t, g in zip(targets, gradients, strict=True)]


def disable_onednn() -> AbstractContextManager[None]:
    """Compute with torch's own loops: on some virtual machines oneDNN's bf16 products end the process."""
    return torch.backends.mkldnn.flags(enabled=False, deterministic=None, allow_tf32=None, fp32_precision=None)


def peak(tensor: Tensor) -> float:
    """Return the largest magnitude in a tensor; NaN if it contains NaN."""
    return float(tensor.detach().abs().max()) if tensor.numel() else 0.0


def largest(sizes: Iterable[float]) -> float:
    """Return the largest of some sizes, 0 if there are none; NaN counts as infinite."""
    return max((torch.inf if size != size else size for size in sizes), default=0.0)


def find_largest(sizes: Tensor) -> tuple[float, int, int]:
    """Return the largest of a table of sizes, its row and its column; NaN counts as infinite."""
    index = int(sizes.nan_to_num(nan=torch.inf).argmax())
    return float(sizes.flatten()[index]), *divmod(index, sizes.shape[1])


def noise(out: Tensor, roundings: float = 32) -> float:
    """Return how much a result of this dtype and size may change by rounding."""
    finite = torch.nan_to_num(out.detach().double(), posinf=0, neginf=0)
    return roundings * torch.finfo(out.dtype).eps * max(peak(finite), 1e-30)


def tolerance(out: Tensor) -> float:
    """Return how much two ways to a result of this dtype and size may differ."""
    return noise(out, ROUNDINGS[out.dtype])
