"""Tokenizers trained on a source: word pieces, byte pairs, or whole words seen often enough; kept by content.

The same text and settings give the same tokenizer in every process, which `tokenizers` alone does not promise.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from attnlab.errors import DataError, closest
from attnlab.machine import cache_folder

from ..cache import hash_of, writing_aside
from ..sources.source import Source
from .builders import BERT, ROBERTA, WORDS, byte_pairs, read_backend, roles_in, whole_words, word_pieces, wrap

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

Kind = Literal["wordpiece", "bpe", "word"]
KINDS: tuple[Kind, ...] = ("wordpiece", "bpe", "word")
ALPHABET = 1000
"""How many characters word pieces are made of, at most: those that the most words have."""
FORMAT = 1
"""Part of what a kept tokenizer is found by; raised when training changes what comes out."""


@dataclass(frozen=True)
class TokenizerSettings:
    """What decides a tokenizer besides the text. A `vocab_size` of 0 sets no limit."""

    kind: Kind
    vocab_size: int
    min_count: int
    lowercase: bool


DEFAULTS = {
    "wordpiece": TokenizerSettings("wordpiece", 8192, 2, lowercase=True),
    "bpe": TokenizerSettings("bpe", 8192, 2, lowercase=False),
    "word": TokenizerSettings("word", 0, 3, lowercase=False),
}


def train_tokenizer(
    source: Source | Sequence[str],
    kind: Kind = "wordpiece",
    vocab_size: int | None = None,
    min_count: int | None = None,
    lowercase: bool | None = None,
) -> PreTrainedTokenizerFast:
    """Train a tokenizer on a source's documents, or find the one that was trained on the same before.

    `kind` is 'wordpiece' (as BERT), 'bpe' (bytes, as RoBERTa) or 'word' (as white space parts them). `vocab_size`
    counts the special tokens, and is without limit for words unless given. `min_count` is how often a pair or a
    word must be seen.
    """
    if kind not in KINDS:
        raise DataError(f"a tokenizer's kind is one of {', '.join(KINDS)}, not '{kind}'{closest(str(kind), KINDS)}")
    default = DEFAULTS[kind]
    plan = TokenizerSettings(
        kind,
        default.vocab_size if vocab_size is None else vocab_size,
        default.min_count if min_count is None else min_count,
        default.lowercase if lowercase is None else lowercase,
    )
    _check(plan)
    identity = source.identity if isinstance(source, Source) else hash_of(list(source))
    key = hash_of([FORMAT, identity, asdict(plan)])
    kept = cache_folder() / "tokenizers" / key[:32]
    if not (kept / "tokenizer.json").exists():
        _keep(_train(source, plan), kept)
    return _read(kept / "tokenizer.json")


def _check(plan: TokenizerSettings) -> None:
    least = len(BERT) + 2 if plan.kind == "wordpiece" else 5 + 256 if plan.kind == "bpe" else 0
    if plan.vocab_size < least:
        raise DataError(f"a '{plan.kind}' tokenizer needs vocab_size of at least {least}; it got {plan.vocab_size}")
    if plan.min_count < 1:
        raise DataError(f"min_count is how often something must be seen, at least 1; it got {plan.min_count}")


def _keep(tokenizer: PreTrainedTokenizerFast, kept: Path) -> None:
    with writing_aside(kept) as aside:
        (aside / "tokenizer.json").write_text(tokenizer.backend_tokenizer.to_str(), encoding="utf-8")
        (aside / "index.json").write_text(json.dumps({"format": FORMAT}), encoding="utf-8")


def _read(path: Path) -> PreTrainedTokenizerFast:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"the kept tokenizer {path} cannot be read ({error}); delete its folder") from error
    return wrap(read_backend(text, path), roles_in(json.loads(text)))


def _train(source: Source | Sequence[str], plan: TokenizerSettings) -> PreTrainedTokenizerFast:
    if plan.kind == "word":
        words = _count_words(source, whole_words(_numbered(WORDS.values())).backend_tokenizer, plan)
        return whole_words(_numbered([*WORDS.values(), *words]), plan.lowercase)
    if plan.kind == "wordpiece":
        return _train_word_pieces(source, plan)
    return _train_byte_pairs(source, plan)


def _count_words(source: Source | Sequence[str], like: Tokenizer, plan: TokenizerSettings) -> list[str]:
    """List the words seen often enough, the most frequent first, as another tokenizer parts the text."""
    from tokenizers import Tokenizer, models, normalizers, trainers

    counter = Tokenizer(models.WordLevel())
    counter.normalizer = normalizers.Lowercase() if plan.kind == "word" and plan.lowercase else like.normalizer
    counter.pre_tokenizer = like.pre_tokenizer
    limit = plan.vocab_size - len(WORDS) if plan.kind == "word" and plan.vocab_size else 1 << 40
    least = plan.min_count if plan.kind == "word" else 1
    trainer = trainers.WordLevelTrainer(vocab_size=limit, min_frequency=least, show_progress=False)
    counter.train_from_iterator(_documents(source), trainer)
    found = counter.get_vocab()
    return [word for word in sorted(found, key=lambda word: found[word]) if word not in WORDS.values()]


def _train_word_pieces(source: Source | Sequence[str], plan: TokenizerSettings) -> PreTrainedTokenizerFast:
    """Train BERT's pieces on words counted first.

    `tokenizers` numbers the pieces ##a, ##b … in the order of a hash table, which differs from process to process,
    and breaks ties between merges by these numbers. Given beforehand, in order, they are always the same.
    """
    from tokenizers import trainers

    empty = word_pieces(_numbered(BERT.values()), plan.lowercase).backend_tokenizer
    words = _count_words(source, empty, plan)
    alphabet = [letter for letter, _ in _ranked(Counter(letter for word in words for letter in set(word)))[:ALPHABET]]
    within = {letter for word in words for letter in word[1:]}
    continuing = [f"##{letter}" for letter in sorted(alphabet) if letter in within]
    trainer = trainers.WordPieceTrainer(
        vocab_size=plan.vocab_size,
        min_frequency=plan.min_count,
        special_tokens=[*BERT.values(), *continuing],
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        show_progress=False,
    )
    empty.train_from_iterator(_documents(source), trainer)
    return word_pieces(empty.get_vocab(with_added_tokens=False), plan.lowercase)


def _ranked(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _train_byte_pairs(source: Source | Sequence[str], plan: TokenizerSettings) -> PreTrainedTokenizerFast:
    from tokenizers import pre_tokenizers, trainers

    specials = list(dict.fromkeys(ROBERTA.values()))
    backend = byte_pairs(_numbered(specials), []).backend_tokenizer
    trainer = trainers.BpeTrainer(
        vocab_size=plan.vocab_size,
        min_frequency=plan.min_count,
        special_tokens=specials,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    if plan.lowercase:
        from tokenizers import normalizers

        backend.normalizer = normalizers.Lowercase()
    backend.train_from_iterator(_documents(source), trainer)
    return wrap(backend, ROBERTA)


def _documents(source: Source | Sequence[str]) -> Iterator[str]:
    return source.documents() if isinstance(source, Source) else iter(source)


def _numbered(tokens: Sequence[str] | object) -> dict[str, int]:
    return {token: number for number, token in enumerate(tokens)}  # type: ignore[arg-type,var-annotated]
