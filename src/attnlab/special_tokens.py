"""The special tokens around a text, as a model saw them in training; pictures, samples and losses of a text use them.

A tokenizer's template is that of an encoder: BERT's adds [CLS] and [SEP] also for a GPT that was trained without them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True)
class SpecialTokens:
    """Ids before and after a text, and the reason for them, as the end of a sentence."""

    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    reason: str = "as asked for"

    @classmethod
    def of_tokenizer(cls, tokenizer: Any, reason: str = "as its tokenizer adds them") -> Self:
        """Return what a tokenizer adds to a text by itself: its template."""
        encoded = tokenizer("a", return_special_tokens_mask=True, padding=False, truncation=False)
        ids, is_special = [int(number) for number in encoded["input_ids"]], encoded["special_tokens_mask"]
        text = [place for place, special in enumerate(is_special) if not special]
        first, last = (text[0], text[-1]) if text else (0, -1)
        return cls(tuple(ids[:first]), tuple(ids[last + 1 :]), reason)

    @classmethod
    def of_model(cls, tokenizer: Any, is_causal: bool | None) -> Self:
        """Return what a model reads around a text if only its tokenizer tells.

        An encoder reads its tokenizer's template. A causal language model reads the start and end tokens in it, such
        as Llama's <s>; a [CLS] or [SEP] that is neither is an encoder's.
        """
        template = cls.of_tokenizer(tokenizer)
        if not is_causal:
            return template
        ends = {tokenizer.bos_token_id, tokenizer.eos_token_id}
        before, after = (tuple(token for token in part if token in ends) for part in (template.before, template.after))
        if (before, after) == (template.before, template.after):
            return template
        omitted = [token for token in (*template.before, *template.after) if token not in ends]
        names = " and ".join(tokenizer.convert_ids_to_tokens(omitted))
        return cls(before, after, f"since {names} of the tokenizer are an encoder's, and this model is causal")

    def list_names(self, tokenizer: Any) -> tuple[list[str], list[str]]:
        """Return the names of the tokens before and after a text."""
        return _name(tokenizer, self.before), _name(tokenizer, self.after)

    def describe(self, tokenizer: Any) -> str:
        """Say in a sentence which tokens are added, and why."""
        before, after = (" ".join(names) for names in self.list_names(tokenizer))
        places = [f"{before} before" if before else "", f"{after} after" if after else ""]
        added = " and ".join(place for place in places if place)
        return f"Special tokens: {f'{added} the text' if added else 'none'}, {self.reason}."


def _name(tokenizer: Any, ids: Sequence[int]) -> list[str]:
    return [str(name) for name in tokenizer.convert_ids_to_tokens(list(ids))] if ids else []
