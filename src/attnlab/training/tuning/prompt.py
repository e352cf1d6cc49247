"""A prompt: learned vectors among the input embeddings, added in place by hooks (Lester et al. 2021).

The body's input is lengthened and its output cut back, so that heads and losses never see the prompt. It comes first
in a causal model, and otherwise after the first token, since heads read position 0 ([CLS]).
"""

import inspect
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from attnlab.errors import TrainingError

from .parts import PROMPT, make_generator
from .positions import count_positions


class Prompt(nn.Module):
    """The vectors [n d], and the hooks that put them among the embeddings of a body.

    The body is given placeholder tokens, so that its own positions and padding are right; the embedding's output has
    the vectors in their places.
    """

    def __init__(self, vectors: Tensor, body: PreTrainedModel) -> None:
        super().__init__()
        self.vectors = nn.Parameter(vectors)
        self.length = len(vectors)
        self.start = 0 if is_causal(body) else 1
        self.placeholder = 1 if body.config.pad_token_id == 0 else 0
        self.num_positions = count_positions(body)
        self.body_name = type(body).__name__
        self.argument_names = tuple(inspect.signature(body.forward).parameters)
        self.is_awaited = False
        self.num_tokens: int | None = None

    def extend(self, body: nn.Module, args: Any, kwargs: dict[str, Any]) -> tuple[tuple[()], dict[str, Any]]:
        """Insert the prompt's placeholders into a body's inputs: a hook before its forward."""
        inputs = {**dict(zip(self.argument_names, args, strict=False)), **kwargs}
        self.is_awaited, self.num_tokens = False, None
        ids = self._get_ids(inputs)
        cache = inputs.get("past_key_values")
        num_past = 0 if cache is None else int(cache.get_seq_length())
        self._check_length(ids.shape[1], num_past)
        if inputs.get("attention_mask") is not None:
            inputs["attention_mask"] = self.insert(inputs["attention_mask"], 1)
        if num_past:  # the prompt is in the cache already and only shifts later positions
            if inputs.get("position_ids") is not None:
                inputs["position_ids"] = inputs["position_ids"] + self.length
            return (), inputs
        inputs["input_ids"] = self.insert(ids, self.placeholder)
        if inputs.get("token_type_ids") is not None:
            inputs["token_type_ids"] = self.insert(inputs["token_type_ids"], 0)
        if inputs.get("position_ids") is not None:
            inputs["position_ids"] = self._shift(inputs["position_ids"])
        self.is_awaited, self.num_tokens = True, ids.shape[1]
        return (), inputs

    def fill(self, embedding: nn.Module, args: Any, output: Tensor) -> Tensor | None:
        """Replace the placeholders' embeddings by the vectors: a hook after the embedding's forward."""
        if not self.is_awaited:
            return None
        self.is_awaited = False  # GPT-2 calls the same embedding again for token types
        before, after = output[:, : self.start], output[:, self.start + self.length :]
        vectors = self.vectors.to(output.dtype).expand(len(output), -1, -1)
        return torch.cat([before, vectors, after], 1)

    def trim(self, body: nn.Module, args: Any, output: Any) -> Any:
        """Remove the prompt from hidden states: a hook after the body's forward.

        Attention weights [b h q k] and the cache keep it.
        """
        is_unused, self.is_awaited = self.is_awaited, False
        if self.num_tokens is None or output is None:  # a failed pass has no output
            return None
        if is_unused:
            raise TrainingError(
                f"{self.body_name} ran without its input embedding, so its prompt could not be inserted"
            )
        if isinstance(output, tuple):
            return self._cut(output)
        for name, value in output.items():
            output[name] = self._cut(value)
        return output

    def _cut(self, value: Any) -> Any:
        """Return hidden states [b n d], or a tuple of them, without the prompt; anything else unchanged."""
        if isinstance(value, tuple):
            return tuple(self._cut(each) for each in value)
        if isinstance(value, Tensor) and value.dim() == 3 and value.shape[1] == (self.num_tokens or 0) + self.length:
            after = value[:, self.start + self.length :]
            return torch.cat([value[:, : self.start], after], 1) if self.start else after
        return value

    def insert(self, row: Tensor, number: int) -> Tensor:
        """Insert a number per vector into [b n]."""
        new = row.new_full((len(row), self.length), number)
        return torch.cat([row[:, : self.start], new, row[:, self.start :]], 1)

    def _shift(self, positions: Tensor) -> Tensor:
        """Give the vectors the next positions, and shift those after them."""
        steps = torch.arange(self.length, device=positions.device)
        new = positions[:, :1] + 1 + steps if self.start else steps.expand(len(positions), -1)
        return torch.cat([positions[:, : self.start], new, positions[:, self.start :] + self.length], 1)

    def _get_ids(self, inputs: Mapping[str, Any]) -> Tensor:
        """Return the token ids of a call; raise an error if a prompt cannot be inserted."""
        ids, mask, positions = (inputs.get(name) for name in ("input_ids", "attention_mask", "position_ids"))
        if not isinstance(ids, Tensor) or inputs.get("inputs_embeds") is not None:
            raise TrainingError(
                f"{self.body_name} has a prompt, which is inserted into input_ids; pass these, not inputs_embeds"
            )
        for name, given in (("input_ids", ids), ("attention_mask", mask), ("position_ids", positions)):
            if given is not None and not (isinstance(given, Tensor) and given.dim() == 2):
                shape = list(given.shape) if isinstance(given, Tensor) else type(given).__name__
                raise TrainingError(f"{self.body_name} has a prompt and needs {name} as [batch, length], not {shape}")
        if mask is None and positions is not None and bool((positions.diff(dim=1) != 1).any()):
            raise TrainingError(
                f"{self.body_name} was given several sequences in one row (packed), and its prompt would come before "
                "the first only; give each sequence its own row"
            )
        return ids

    def _check_length(self, num_tokens: int, num_past: int) -> None:
        needed = num_tokens + (num_past or self.length)
        if self.num_positions is not None and needed > self.num_positions:
            raise TrainingError(
                f"an input of {needed - self.length} tokens and a prompt of {self.length} need {needed} positions, and "
                f"{self.body_name} has {self.num_positions}; cut inputs to {self.num_positions - self.length} tokens "
                "(max_len of the task), or take a shorter prompt"
            )


def add_prompt(model: PreTrainedModel, length: int, seed: int) -> None:
    """Add a prompt that starts as the embeddings of tokens drawn by the seed."""
    body, embedding = _find_embedding(model)
    num_positions = count_positions(body)
    if num_positions is not None and length >= num_positions:
        raise TrainingError(
            f"a prompt of {length} leaves no room for an input: {type(body).__name__} has {num_positions} positions"
        )
    tokens = torch.tensor([token for token in range(embedding.num_embeddings) if token != body.config.pad_token_id])
    drawn = tokens[torch.randint(len(tokens), (length,), generator=make_generator(seed, PROMPT))]
    with torch.no_grad():
        # The output, not rows of the weight: some embeddings (Gemma's) scale them.
        prompt = Prompt(embedding(drawn.to(embedding.weight.device)).clone(), body)
    prompt.train(model.training)
    setattr(model, PROMPT, prompt)
    body.register_forward_pre_hook(prompt.extend, with_kwargs=True)
    embedding.register_forward_hook(prompt.fill)
    body.register_forward_hook(prompt.trim, always_call=True)


def _find_embedding(model: PreTrainedModel) -> tuple[PreTrainedModel, nn.Embedding]:
    """Return the innermost model that holds the input embedding, which every head calls, and the embedding."""
    embedding = model.get_input_embeddings()
    holders = [
        part
        for part in model.modules()
        if isinstance(part, PreTrainedModel) and any(module is embedding for module in part.modules())
    ]
    if model.config.is_encoder_decoder or not isinstance(embedding, nn.Embedding):
        raise TrainingError(
            f"{type(model).__name__} has no single sequence of tokens for a prompt (it is an encoder-decoder, or has "
            "no token embedding); a prompt needs a model with one stack"
        )
    return holders[-1], embedding


def is_causal(body: PreTrainedModel) -> bool:
    """Tell whether a body is causal, according to `is_causal` of its attention modules."""
    values = {module.is_causal for module in body.modules() if isinstance(getattr(module, "is_causal", None), bool)}
    if len(values) != 1:
        raise TrainingError(
            f"the attention modules of {type(body).__name__} do not say whether it is causal (`is_causal`), which "
            "decides where a prompt goes"
        )
    return bool(values.pop())
