"""A text as the tokens of a model, with a name for each that fits on an axis."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoTokenizer, PreTrainedModel

from attnlab.errors import PretrainedError, RequestError
from attnlab.pretrained import load_pretrained
from attnlab.special_tokens import SpecialTokens

MAX_TOKENS = 256
"""More cannot be told apart in a picture."""
WORD_STARTS, CONTINUES = ("Ġ", "▁"), "##"
"""How vocabularies mark a piece that begins a word, and one that continues it."""
BLANKS = {"\n": "⏎", "\t": "⇥", " ": "␣"}


@dataclass(frozen=True)
class TextTokens:
    """The inputs of a model for one text, [1 n] each, and the names of the tokens."""

    inputs: Mapping[str, Tensor]
    names: tuple[str, ...]


def find_tokenizer(model: PreTrainedModel, given: Any) -> Any:
    """Return the tokenizer that was given, by itself or by its name, else the one in the model's folder or name."""
    if given is not None and not isinstance(given, str | Path):
        return given
    name = given or getattr(model, "name_or_path", "") or getattr(model.config, "name_or_path", "")
    if not name:
        raise RequestError(
            f"this {type(model).__name__} does not say where it was loaded from, so its tokenizer is not known; "
            "give tokenizer=, a tokenizer of transformers or the folder of one"
        )
    try:
        return load_pretrained(AutoTokenizer, name)
    except PretrainedError as error:
        raise RequestError(f"'{name}' has no tokenizer ({error}); give tokenizer=") from error


def read_tokens(text: str, tokenizer: Any, special_tokens: SpecialTokens | None = None) -> TextTokens:
    """Encode one text without padding or truncation, and name its tokens.

    special_tokens: those around the text; by default what the tokenizer adds.
    """
    if not isinstance(text, str):
        raise RequestError(
            f"heads.show takes one text, not {type(text).__name__}; call it once for each text of a batch, which also "
            "needs no padding"
        )
    is_fast = bool(getattr(tokenizer, "is_fast", False))
    # Some tokenizers pad or truncate unless they are told not to.
    encoded = tokenizer(
        text, return_tensors="pt", padding=False, truncation=False, return_special_tokens_mask=True,
        return_offsets_mapping=is_fast,
    )  # fmt: skip
    if special_tokens is not None:
        encoded = _replace_special_tokens(encoded, special_tokens)
    is_special = encoded.pop("special_tokens_mask")[0].tolist()
    offsets = encoded.pop("offset_mapping")[0].tolist() if is_fast else None
    ids = encoded["input_ids"][0].tolist()
    if not text.strip() and not ids:
        raise RequestError(f"the text {text!r} has no tokens; give a longer one")
    if len(ids) > MAX_TOKENS:
        raise RequestError(f"the text has {len(ids)} tokens, more than a picture can show ({MAX_TOKENS}); shorten it")
    words = {number for number, special in zip(ids, is_special, strict=True) if not special}
    if not ids or words == {getattr(tokenizer, "unk_token_id", None)}:
        # transformers makes an empty tokenizer for a folder that has a config and no vocabulary.
        raise RequestError(
            f"the tokenizer knows no part of the text {text!r}: it is of another model, or its folder has no "
            "vocabulary; give the model's own"
        )
    pieces = tokenizer.convert_ids_to_tokens(ids)
    names = pieces if offsets is None else name_pieces(text, pieces, offsets, is_special)
    return TextTokens(dict(encoded), tuple(names))


def _replace_special_tokens(encoded: Mapping[str, Tensor], special_tokens: SpecialTokens) -> dict[str, Tensor]:
    """Remove what a tokenizer added before and after a text, and put other tokens there."""
    text = (encoded["special_tokens_mask"][0] == 0).nonzero().flatten().tolist()
    start, stop = (text[0], text[-1] + 1) if text else (0, 0)
    replaced = {}
    for name, values in encoded.items():
        value = int(name in ("attention_mask", "special_tokens_mask"))
        before, after = (
            values.new_tensor([ids])
            if name == "input_ids"
            else values.new_full((1, len(ids), *values.shape[2:]), value)
            for ids in (special_tokens.before, special_tokens.after)
        )
        replaced[name] = torch.cat([before, values[:, start:stop], after], 1)
    return replaced


def name_ids(ids: Sequence[int], tokenizer: Any) -> list[str]:
    """Name tokens whose text is not at hand; those of a probe, which has no tokenizer, by their numbers."""
    if tokenizer is None:
        return [str(number) for number in ids]
    pieces, special = tokenizer.convert_ids_to_tokens(ids), set(tokenizer.all_special_tokens)
    marks_words = any(piece.startswith(WORD_STARTS) for piece in pieces)
    return [piece if piece in special else _name_piece(piece, tokenizer, marks_words) for piece in pieces]


def _name_piece(piece: str, tokenizer: Any, marks_words: bool) -> str:
    if piece.startswith(CONTINUES):
        return f"-{piece.removeprefix(CONTINUES)}"
    text = str(tokenizer.convert_tokens_to_string([piece]))
    if not text.strip():
        return "".join(BLANKS.get(character, "␣") for character in text) or piece
    continues = marks_words and not piece.startswith(WORD_STARTS) and text[0].isalnum()
    return f"-{text}" if continues else text.strip()


def name_pieces(
    text: str, pieces: Sequence[str], offsets: Sequence[Sequence[int]], is_special: Sequence[int]
) -> list[str]:
    """Name tokens by their part of the text; a piece that continues a word begins with a hyphen.

    The vocabulary itself writes spaces as Ġ or ▁ and letters beyond ASCII as bytes.
    """
    names = []
    for piece, (start, end), special in zip(pieces, offsets, is_special, strict=True):
        part = text[start:end]
        if special or not part:
            names.append(piece)
        elif not part.strip():
            names.append("".join(BLANKS.get(character, "␣") for character in part))
        else:
            continues = start > 0 and part[0].isalnum() and text[start - 1].isalnum()
            names.append(f"-{part}" if continues else part.strip())
    return names
