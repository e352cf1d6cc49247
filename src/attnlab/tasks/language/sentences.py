"""Single sentences of a causal language model: their losses, and samples."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.errors import TaskError
from attnlab.special_tokens import SpecialTokens

from ..objective import NotFiniteError, compute_logits, evaluation_mode
from .clm import Clm
from .line import LineLoss, make_lines


def sentence_losses(
    model: nn.Module, tokenizer: Any, sentences: Sequence[str], task: Clm | None = None
) -> list[LineLoss]:
    """Return the loss of each sentence; with `Clm(has_leak_free_perplexity=True)`, computed prefix by prefix."""
    task = Clm() if task is None else task
    lines = make_lines(sentences)
    losses = [LineLoss()] * len(lines)
    for feature in task.features(lines, tokenizer):
        leak_free = task.compute_others(model, [feature])
        losses[int(feature.key)] += (leak_free or task.compute_losses(model, task.collate([feature])))[0]
    empty = next((line for line, loss in zip(lines, losses, strict=True) if not loss.num_tokens), None)
    if empty is not None:
        raise TaskError(f"{empty.place}: {empty.text[:40]!r} leaves none of its tokens to predict; give a longer one")
    return losses


def sample(
    model: nn.Module, tokenizer: Any, prompt: str = "", *, num_tokens: int = 40, temperature: float = 1.0,
    top_k: int | None = None, seed: int = 0, task: Clm | None = None,
) -> str:  # fmt: skip
    """Continue a prompt with tokens drawn one by one, until the end token; a temperature of 0 takes the likeliest.

    Each step runs the whole past without a cache, so that no cache can hide what the mechanism does. task: that of the
    model's training, which decides whether a text begins with the start token; by default the tokenizer decides. The
    text shows a word that the tokenizer does not know as its sign for unknown words, and no other special token.
    """
    ids, _ = sample_tokens(
        model, tokenizer, prompt, num_tokens=num_tokens, temperature=temperature, top_k=top_k, seed=seed, task=task
    )
    return decode(tokenizer, ids)


def sample_tokens(
    model: nn.Module, tokenizer: Any, prompt: str = "", *, num_tokens: int = 40, temperature: float = 1.0,
    top_k: int | None = None, seed: int = 0, task: Clm | None = None,
) -> tuple[list[int], int]:  # fmt: skip
    """Continue a prompt as `sample` does; return all tokens, and how many of them are the prompt's."""
    if temperature < 0:
        raise TaskError(f"a temperature is 0 or more, not {temperature:g}")
    if top_k is not None and top_k < 1:
        raise TaskError(f"top_k is 1 or more, not {top_k}; leave it out to draw from all tokens")
    ids = encode_prompt(tokenizer, prompt, task)
    generator = torch.Generator().manual_seed(seed)
    num_given = len(ids)
    with evaluation_mode(model):
        while len(ids) - num_given < num_tokens:
            past = torch.tensor([ids])
            logits = compute_logits(model, {"input_ids": past, "attention_mask": torch.ones_like(past)})[0, -1]
            ids.append(_draw_token(logits.double().cpu(), temperature, top_k, generator))
            if ids[-1] == tokenizer.eos_token_id:
                break
    return ids, num_given


def decode(tokenizer: Any, ids: Sequence[int]) -> str:
    """Return the text of tokens without special tokens, but with those of unknown words, which stand for text."""
    unknown = {tokenizer.unk_token_id} - {tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id}
    hidden = {*tokenizer.all_special_ids} - unknown
    return str(tokenizer.decode([token for token in ids if token not in hidden]))


def _draw_token(logits: Tensor, temperature: float, top_k: int | None, generator: torch.Generator) -> int:
    if not bool(logits.isfinite().all()):
        raise NotFiniteError(
            "the model's logits have NaN or infinity in them; it diverged, so look at its training loss"
        )
    if temperature == 0:
        return int(logits.argmax())
    kept = logits.topk(min(top_k or logits.numel(), logits.numel()))
    probabilities = torch.softmax(kept.values / temperature, -1)
    return int(kept.indices[torch.multinomial(probabilities, 1, generator=generator)])


def encode_prompt(tokenizer: Any, prompt: str, task: Clm | None = None) -> list[int]:
    """Return the tokens of a prompt, after the start token if lines have one; refuse to begin with none at all."""
    ids: list[int] = tokenizer(prompt, add_special_tokens=False)["input_ids"] if prompt else []
    added = SpecialTokens.of_model(tokenizer, True) if task is None else task.find_special_tokens(tokenizer)
    start = added.before
    if task is None and not start and not ids and tokenizer.bos_token_id is not None:
        start = (tokenizer.bos_token_id,)  # a text must begin with something
    if not start and not ids:
        why = (
            "this tokenizer has no start token" if tokenizer.bos_token_id is None else "this model reads no start token"
        )
        raise TaskError(f"{why} to begin with; give a prompt")
    return [*start, *ids]
