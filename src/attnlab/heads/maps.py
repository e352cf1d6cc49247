"""`show`: from a model and a text to a picture of its attention, layer by layer and head by head."""

import textwrap
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from attnlab.charts import Chart, head_grid, save, svg
from attnlab.charts.head_grid import CONTINUING, HeadGrid, is_continuing
from attnlab.errors import RequestError
from attnlab.notebook import Facts, Showable
from attnlab.special_tokens import SpecialTokens

from .recording import find_model, is_causal, record_weights
from .tokens import find_tokenizer, read_tokens

CHARACTERS = 90


@dataclass(frozen=True, eq=False, repr=False)
class AttentionMaps(Showable):
    """The weights of every head on one text. A notebook shows the picture; `save` writes it to a file."""

    name: str
    """Of the model."""
    weights: Tensor
    """[layers heads queries keys], of the layers that have weights."""
    tokens: tuple[str, ...]
    """The names of the queries; learned keys of a prefix come before them."""
    source: str
    """How the weights were computed."""
    layer: int
    head: int
    """The head that is shown large."""
    layers: tuple[int, ...]
    """The numbers of the layers."""
    reason: str = ""
    """Why this head, if it was chosen automatically."""
    special_tokens: str = ""
    """Which special tokens stand around the text, and why."""

    @property
    def shown(self) -> Tensor:
        """The weights [queries keys] of the head that is shown large."""
        return self.weights[self.layers.index(self.layer), self.head]

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of the keys: those of a learned prefix, then the tokens."""
        num_learned = self.weights.shape[3] - len(self.tokens)
        return (*(f"(prefix {number})" for number in range(num_learned)), *self.tokens)

    def enlarge(self, layer: int, head: int) -> Self:
        """Return the same maps with another head shown large."""
        heads = tuple(range(self.weights.shape[1]))
        for what, number, known in (("layer", layer, self.layers), ("head", head, heads)):
            if isinstance(number, bool) or not isinstance(number, int) or number not in known:
                is_range = known == tuple(range(len(known)))
                wanted = f"a number from 0 to {known[-1]}" if is_range else f"one of {', '.join(map(str, known))}"
                raise RequestError(f"{what} must be {wanted}, not {number!r}")
        return replace(self, layer=layer, head=head, reason="")

    def figure(self) -> Chart:
        """Draw one head large and all heads small."""
        grid = HeadGrid(self.weights.numpy(), self.tokens, self.keys, self.layer, self.head, self.layers)
        sentences = [one for one in (self.source, self.special_tokens, self.reason) if one]
        if any(is_continuing(token) for token in self.tokens):
            sentences.append(CONTINUING)
        lines = [line for sentence in sentences for line in textwrap.wrap(sentence, CHARACTERS)]
        return head_grid.draw(grid, self.name, lines)

    def save(self, path: str | Path) -> Path:
        """Write the picture in the format of the file's ending: .html, .svg, .png or .json."""
        return save(self.figure(), path)

    def facts(self) -> Facts:
        """Return the model, the size of the maps, and how they were computed."""
        num_layers, num_heads, num_tokens, _ = self.weights.shape
        return Facts(f"{self.name}: {num_layers} layers × {num_heads} heads, {num_tokens} tokens", self.source)

    def picture(self) -> str:
        """Return the picture as an SVG."""
        return svg(self.figure())


def show(
    model: nn.Module, text: str, *, tokenizer: Any = None, layer: int | None = None, head: int | None = None,
    special_tokens: SpecialTokens | bool | None = None,
) -> AttentionMaps:  # fmt: skip
    """Show what each head of a trained model attends to in a text.

    model: a Hugging Face model, with a mechanism installed or not; nothing is changed in it.
    tokenizer: a tokenizer of transformers or the folder of one; by default that of the model's folder or name.
    layer, head: the head that is shown large; by default the one that is most intent on single other tokens.
    special_tokens: those around the text. By default an encoder reads what its tokenizer adds, and a causal model only
    the start and end tokens among them, not [CLS] and [SEP]. True: what the tokenizer adds; False: none.
    """
    if (layer is None) != (head is None):
        raise RequestError("layer and head choose one head together; give both or neither")
    body = find_model(model)
    found = find_tokenizer(body, tokenizer)
    added = _choose_special_tokens(special_tokens, found, body)
    tokens = read_tokens(text, found, added)
    weights, source, layers = record_weights(model, tokens.inputs)
    # Learned tokens before the text (prompt tuning) are queries too.
    num_learned = weights.shape[2] - len(tokens.names)
    names = (*(f"(prompt {number})" for number in range(num_learned)), *tokens.names)
    described = added.describe(found)
    maps = AttentionMaps(type(body).__name__, weights, names, source, layers[0], 0, layers, "", described)
    if layer is not None and head is not None:
        return maps.enlarge(layer, head)
    chosen = choose_head(weights)
    return replace(maps, layer=layers[chosen[0]], head=chosen[1], reason=REASON)


def _choose_special_tokens(given: SpecialTokens | bool | None, tokenizer: Any, body: PreTrainedModel) -> SpecialTokens:
    if isinstance(given, SpecialTokens):
        return given
    if given is None:
        return SpecialTokens.of_model(tokenizer, is_causal(body))
    return SpecialTokens.of_tokenizer(tokenizer, "as asked for") if given else SpecialTokens()


REASON = "Shown large: the head with the highest mean weight on one token other than the first and itself."


def choose_head(weights: Tensor) -> tuple[int, int]:
    """Return the index of a layer and a head: the highest mean weight on one token other than the first and itself.

    Many heads rest on the first token, and many look at their own; such maps are all alike.
    """
    num_queries, num_keys = weights.shape[2:]
    others = weights.abs().clone()
    others[..., 0] = 0
    torch.diagonal(others, num_keys - num_queries, -2, -1).zero_()
    focus = others.amax(-1).mean(-1)
    return divmod(int(focus.argmax()), weights.shape[1])
