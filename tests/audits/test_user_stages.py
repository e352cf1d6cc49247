"""Audits of a new user's stages: the seven of `tests/user_stages.py` are sound, and broken variants are caught."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

import attnlab
from attnlab.mechanisms import Dims, Parameter, Params, Positions, Score, Weights, masked_softmax, stage
from tests.user_stages import LINES, register

from .in_model.models import gpt2

pytestmark = pytest.mark.usefixtures("own_stages")

JUDGED = [
    "causal leak", "prefix consistency", "padding and batch invariance", "gradient flow", "numerics", "equivalences",
    "magnitude against length", "weights",
]  # fmt: skip
OF_LINES = ["causal leak", "prefix consistency", "padding and batch invariance", "equivalences"]
OF_MODELS = ["causal leak", "prefix consistency", "padding and batch invariance"]

Scoring = Callable[..., Tensor]


def score_stage(compute: Scoring) -> str:
    """Register scores of q·k/√d plus something, which has a learned number per head, and return a line of them."""

    @stage("broken")
    @dataclass(frozen=True)
    class Broken(Score):
        def parameters(self, dims: Dims) -> dict[str, Parameter]:
            return {"t": Parameter((dims.num_heads,), 0.5, 1.0)}

        def __call__(self, q: Tensor, k: Tensor, p: Params, *, positions: Positions, visible: Tensor) -> Tensor:
            return torch.add(q @ k.mT / q.shape[-1] ** 0.5, compute(q, k, p["t"][:, None, None], positions, visible))

    # Not softmax, which does not see what all keys of a query have in common.
    return "broken | sigmoid"


def weights_stage(compute: Scoring) -> str:
    """Register weights with a learned number per head, and return a line of them."""

    @stage("broken")
    @dataclass(frozen=True)
    class Broken(Weights):
        def parameters(self, dims: Dims) -> dict[str, Parameter]:
            return {"t": Parameter((dims.num_heads,), 0.5, 1.0)}

        def __call__(self, scores: Tensor, n: Tensor, p: Params, *, positions: Positions, visible: Tensor) -> Tensor:
            return compute(scores, n, p["t"][:, None, None], positions, visible)

    return "dot | broken"


def block_bias(q: Tensor, k: Tensor, t: Tensor, positions: Positions, visible: Tensor) -> Tensor:
    """A relative bias whose positions count from the first query of the block."""
    return t * (torch.arange(q.shape[2])[:, None] - torch.arange(k.shape[2])).clamp(-6, 6)


def leaking_window(s: Tensor, n: Tensor, t: Tensor, positions: Positions, visible: Tensor) -> Tensor:
    """A window that forgets that later keys in it are forbidden."""
    return masked_softmax(s * t, (positions.distances.abs() < 5) & torch.ones_like(s, dtype=torch.bool))


def coupled_pairs(s: Tensor, n: Tensor, t: Tensor, positions: Positions, visible: Tensor) -> Tensor:
    """Differential attention that takes its second map from another sequence."""
    w = masked_softmax(s * t, visible)
    return w - 0.5 * w.roll(1, 0)


def forgets_from_the_block(q: Tensor, k: Tensor, t: Tensor, positions: Positions, visible: Tensor) -> Tensor:
    """A forgetting gate that takes a query's own key to be at its place in the block."""
    gate = functional.logsigmoid(k.mean(-1) * t[..., 0] + 1).cumsum(-1)
    own = gate[..., : q.shape[2]]
    return functional.pad(own, (0, q.shape[2] - own.shape[2]))[..., :, None] - gate[..., None, :]


def forgets_the_future(q: Tensor, k: Tensor, t: Tensor, positions: Positions, visible: Tensor) -> Tensor:
    """A forgetting gate that sums from the last key back, over keys that nobody may see yet."""
    gate = functional.logsigmoid(k.mean(-1) * t[..., 0] + 1)
    return (gate.flip(-1).cumsum(-1).flip(-1) * torch.linspace(1, 2, k.shape[2]).to(k))[..., None, :]


def masks_before_it_multiplies(s: Tensor, n: Tensor, t: Tensor, positions: Positions, visible: Tensor) -> Tensor:
    """A temperature of log n, which is 0 for one key: what was masked comes back."""
    return torch.softmax(s.masked_fill(~visible, -1e9) * t * n.log(), -1)


def counts_the_keys_it_is_shown(s: Tensor, n: Tensor, t: Tensor, positions: Positions, visible: Tensor) -> Tensor:
    """A temperature by how many keys came in, not by how many may be seen."""
    return masked_softmax(s * t * torch.tensor(s.shape[-1]).log(), visible)


def sums_over_all(s: Tensor, n: Tensor, t: Tensor, positions: Positions, visible: Tensor) -> Tensor:
    """Linear attention normalised over all keys."""
    w = (t * s).exp()
    return w / w.sum(-1, keepdim=True)


def heads_talk_across_the_batch(s: Tensor, n: Tensor, t: Tensor, positions: Positions, visible: Tensor) -> Tensor:
    """Heads mixed with those of the mean sequence."""
    return masked_softmax(t * (s + 0.3 * s.mean((0, 1), keepdim=True)), visible)


def normalises_over_queries(s: Tensor, n: Tensor, t: Tensor, positions: Positions, visible: Tensor) -> Tensor:
    """Scores divided by their size over all queries that came in together."""
    return masked_softmax(t * s / s.square().mean((1, 2, 3), keepdim=True).sqrt(), visible)


BROKEN: dict[str, tuple[Callable[[Scoring], str], Scoring]] = {
    "relative bias: positions of the block": (score_stage, block_bias),
    "window: leaks": (weights_stage, leaking_window),
    "differential: couples sequences": (weights_stage, coupled_pairs),
    "forgetting: positions of the block": (score_stage, forgets_from_the_block),
    "forgetting: the future": (score_stage, forgets_the_future),
    "log n: weight on forbidden keys": (weights_stage, masks_before_it_multiplies),
    "log n: the wrong n": (weights_stage, counts_the_keys_it_is_shown),
    "elu+1 linear: sums over forbidden keys": (weights_stage, sums_over_all),
    "talking heads: across the batch": (weights_stage, heads_talk_across_the_batch),
    "talking heads: over queries": (weights_stage, normalises_over_queries),
}


@pytest.mark.parametrize("name", LINES)
def test_a_sound_stage_passes(name: str) -> None:
    register()
    audit = attnlab.audit(LINES[name], checks=JUDGED)
    assert audit.passed, str(audit)


@pytest.mark.parametrize("name", LINES)
def test_a_sound_stage_passes_in_a_model(name: str) -> None:
    register()
    model = attnlab.install(gpt2(), LINES[name])
    audit = attnlab.audit(model)
    assert audit.passed, str(audit)
    assert any("static cache" in part.name for part in audit.findings["prefix"].parts)


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_stage_is_caught(name: str) -> None:
    make, compute = BROKEN[name]
    line = make(compute)
    for causal in (True, False):
        if causal or name != "forgetting: the future":
            checks = OF_LINES if causal else OF_LINES[2:]
            # One check that fails is enough, and the later ones are not run.
            assert any(not attnlab.audit(line, causal=causal, checks=[check]).passed for check in checks), causal


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_stage_is_caught_in_a_model(name: str) -> None:
    make, compute = BROKEN[name]
    model = attnlab.install(gpt2(), make(compute))
    assert any(not attnlab.audit(model, checks=[check]).passed for check in OF_MODELS)


def test_a_window_that_is_wrong_from_a_static_cache_alone_is_caught() -> None:
    def from_the_last_slot(s: Tensor, n: Tensor, t: Tensor, positions: Positions, visible: Tensor) -> Tensor:
        """A window for which the last query stands at the last slot."""
        row = torch.arange(s.shape[2])[:, None] + s.shape[3] - s.shape[2]
        return masked_softmax(t * s, visible & ((row - torch.arange(s.shape[3])).abs() < 12))

    model = attnlab.install(gpt2(), weights_stage(from_the_last_slot))
    finding = attnlab.audit(model, checks=["prefix"]).findings["prefix"]
    assert {part.name.split(",")[0] for part in finding.parts if not part.passed} == {"static cache"}


def test_a_row_that_changes_only_in_a_large_batch_is_caught() -> None:
    @stage("broken")
    @dataclass(frozen=True)
    class Broken(Score):
        """ALiBi as one writes it without positions; right as long as nothing is split."""

        def __call__(self, q: Tensor, k: Tensor, p: Params) -> Tensor:
            distance = torch.arange(q.shape[2])[:, None] - torch.arange(k.shape[2])
            return torch.sub(q @ k.mT / q.shape[-1] ** 0.5, 0.2 * distance.abs())

    import transformers

    torch.manual_seed(0)
    library: Any = transformers
    config = library.BertConfig(
        vocab_size=48, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=48,
        max_position_embeddings=64,
    )  # fmt: skip
    model = attnlab.install(library.BertForMaskedLM(config), "broken | softmax")
    finding = attnlab.audit(model, checks=["padding"]).findings["padding"]
    failed = [part for part in finding.parts if not part.passed]
    assert [part.note for part in failed] == ["its neighbours in a batch that kernels split"]
    assert not attnlab.audit("broken | softmax", causal=False, checks=["equivalences"]).passed
