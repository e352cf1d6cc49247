"""The i.i.d. test: a tiny model trained on uniform random tokens cannot predict them, unless it sees them.

The best honest loss is ln V, whatever the model. One that falls below it has seen the token it was to predict; scored
on prefixes alone, where there is nothing to see, the same model is worse than a guess.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .check import check
from .finding import Finding, FindingPart
from .subject import Subject

NAME = "i.i.d. test"
VOCABULARY, LENGTH, WIDTH, LAYERS, HEADS = 16, 16, 64, 2, 2
BATCH, STEPS, RATE = 64, 600, 3e-3
NUM_TESTED = 512
FLOOR = math.log(VOCABULARY)
DEVIATIONS = 4
"""How many standard errors below ln V a mean over random tokens may lie by chance."""


@check(NAME, kind="random_tokens", is_slow=True)
def random_tokens(subject: Subject) -> Finding | None:
    """Train a tiny GPT-2 with the mechanism on random tokens, and compare its loss with ln V."""
    if True not in subject.causalities:
        return None
    # transformers takes seconds to import, and no other check of a mechanism needs it.
    from attnlab.install import install

    model = tiny_model(subject.seed)
    install(model, subject.mechanism, seed=subject.seed)
    train(model, subject.seed)
    tokens = torch.randint(VOCABULARY, (NUM_TESTED, LENGTH), generator=torch.Generator().manual_seed(subject.seed + 2))
    model.eval()
    with torch.no_grad():
        forced, honest = teacher_forced(model, tokens), from_prefixes(model, tokens)
    loss, on_prefixes = float(forced.mean()), float(honest.mean())
    chance = DEVIATIONS * float(forced.std()) / forced.numel() ** 0.5
    part = FindingPart("nats below ln V", FLOOR - loss, max(chance, 1e-3))
    return Finding(
        NAME, part.passed, part.figure, part.bound, sentence(part.passed, loss, on_prefixes),
        "" if part.passed else subject.blame((), f"what '{subject.mechanism}' lets a token see"),
        parts=(part, FindingPart("loss, whole sequence there", loss), FindingPart("loss, prefix alone", on_prefixes)),
        data={"loss": loss, "prefix_loss": on_prefixes, "floor": FLOOR, "steps": STEPS},
    )  # fmt: skip


def tiny_model(seed: int) -> nn.Module:
    """Build a GPT-2 of two small layers; the caller's random numbers stay as they are."""
    import transformers

    config = transformers.GPT2Config(
        vocab_size=VOCABULARY, n_positions=LENGTH, n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS,
        bos_token_id=0, eos_token_id=0, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model: nn.Module = transformers.GPT2LMHeadModel(config)  # type: ignore[no-untyped-call]
    return model


def train(model: Any, seed: int) -> None:
    """Train on random tokens that are drawn anew at every step."""
    draw = torch.Generator().manual_seed(seed + 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0)
    model.train()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for _ in range(STEPS):
            loss = teacher_forced(model, torch.randint(VOCABULARY, (BATCH, LENGTH), generator=draw)).mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()


def teacher_forced(model: Any, tokens: Tensor) -> Tensor:
    """Return the loss of every token but the first, where the model is shown the whole sequence."""
    logits: Tensor = model(input_ids=tokens).logits[:, :-1]
    return F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten(), reduction="none")


def from_prefixes(model: Any, tokens: Tensor) -> Tensor:
    """Return the loss of every token but the first, where the model is shown what comes before it and no more."""
    losses = [
        F.cross_entropy(model(input_ids=tokens[:, :t]).logits[:, -1], tokens[:, t], reduction="none")
        for t in range(1, tokens.shape[1])
    ]
    return torch.stack(losses)


def sentence(passed: bool, loss: float, on_prefixes: float) -> str:
    """Explain the finding to a student."""
    numbers = f"{loss:.2f} nats with the whole sequence there, {on_prefixes:.2f} on prefixes alone"
    if not math.isfinite(loss):
        return f"Training on random tokens diverged ({numbers}), so nothing can be said."
    if passed:
        return f"Random tokens stay unpredictable: {numbers}; the least there can be is ln {VOCABULARY} = {FLOOR:.2f}."
    return (
        f"It predicts what cannot be predicted: {numbers}, where the least there can be is ln {VOCABULARY} = "
        f"{FLOOR:.2f}. It has seen the tokens it was to predict."
    )
