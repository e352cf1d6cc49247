"""The i.i.d. test: a tiny model trained on uniform random tokens cannot predict them, unless it sees them.

The best loss without a leak is ln V, whatever the model. A lower loss means that the model saw the token it was to
predict; on prefixes alone, where it cannot, the same model is worse than a guess.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .check import check
from .finding import Finding, FindingPart
from .stage_faults import find_stage_of_hidden_tokens, locate_fault
from .subject import Subject

NAME = "i.i.d. test"
VOCABULARY, LENGTH, WIDTH, LAYERS, HEADS = 16, 16, 64, 2, 2
BATCH, STEPS, RATE = 64, 600, 3e-3
NUM_TESTED = 512
FLOOR = math.log(VOCABULARY)
DEVIATIONS = 4
"""How many standard errors below ln V a mean over random tokens may be by chance."""


@check(NAME, kind="random_tokens", is_slow=True)
def random_tokens(subject: Subject) -> Finding | None:
    """Train a tiny GPT-2 with the mechanism on random tokens, and compare its loss with ln V."""
    if True not in subject.causalities:
        return None
    # transformers takes seconds to import, and no other check of a mechanism needs it.
    from attnlab.install import install

    model = _build_tiny_gpt2(subject.seed)
    install(model, subject.mechanism, seed=subject.seed)
    _train_on_random_tokens(model, subject.seed)
    tokens = torch.randint(VOCABULARY, (NUM_TESTED, LENGTH), generator=torch.Generator().manual_seed(subject.seed + 2))
    model.eval()
    with torch.no_grad():
        losses, prefix_losses = _compute_losses(model, tokens), _compute_prefix_losses(model, tokens)
    loss, prefix_loss = float(losses.mean()), float(prefix_losses.mean())
    chance = DEVIATIONS * float(losses.std()) / losses.numel() ** 0.5
    part = FindingPart("nats below ln V", FLOOR - loss, max(chance, 1e-3))
    return Finding(
        NAME, part.passed, part.figure, part.bound, _explain(part.passed, loss, prefix_loss),
        "" if part.passed else _find_cause(subject),
        parts=(part, FindingPart("loss, whole sequence there", loss), FindingPart("loss, prefix alone", prefix_loss)),
        data={"loss": loss, "prefix_loss": prefix_loss, "floor": FLOOR, "steps": STEPS},
    )  # fmt: skip


def _find_cause(subject: Subject) -> str:
    where = find_stage_of_hidden_tokens(subject) or f"what '{subject.mechanism}' lets a token see"
    return locate_fault(subject, (), where)


def _build_tiny_gpt2(seed: int) -> nn.Module:
    import transformers

    config = transformers.GPT2Config(
        vocab_size=VOCABULARY, n_positions=LENGTH, n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS,
        bos_token_id=0, eos_token_id=0, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model: nn.Module = transformers.GPT2LMHeadModel(config)  # type: ignore[no-untyped-call]
    return model


def _train_on_random_tokens(model: Any, seed: int) -> None:
    draw = torch.Generator().manual_seed(seed + 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0)
    model.train()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for _ in range(STEPS):
            loss = _compute_losses(model, torch.randint(VOCABULARY, (BATCH, LENGTH), generator=draw)).mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()


def _compute_losses(model: Any, tokens: Tensor) -> Tensor:
    """Return the loss of every token but the first, with the whole sequence as input."""
    logits: Tensor = model(input_ids=tokens).logits[:, :-1]
    return F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten(), reduction="none")


def _compute_prefix_losses(model: Any, tokens: Tensor) -> Tensor:
    """Return the loss of every token but the first, with only the tokens before it as input."""
    losses = [
        F.cross_entropy(model(input_ids=tokens[:, :t]).logits[:, -1], tokens[:, t], reduction="none")
        for t in range(1, tokens.shape[1])
    ]
    return torch.stack(losses)


def _explain(passed: bool, loss: float, prefix_loss: float) -> str:
    numbers = f"{loss:.2f} nats on whole sequences, {prefix_loss:.2f} on prefixes"
    floor = f"ln {VOCABULARY} = {FLOOR:.2f}"
    if not math.isfinite(loss):
        return f"Training on random tokens diverged ({numbers}), so this test has no result."
    if passed:
        return f"Random tokens stay unpredictable: {numbers}; the lowest possible loss is {floor}."
    return (
        f"It predicts what cannot be predicted: {numbers}, while the lowest possible loss without a leak is {floor}. "
        "It has seen the tokens it was to predict."
    )
