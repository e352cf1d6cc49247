"""Tokenizers trained on a source and cached: word pieces, byte-level BPE, whole words, or characters.

The same text and settings give the same tokenizer in every process, which `tokenizers` alone does not guarantee.
"""

import json
import shutil
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

from attnlab.checksums import DamageError, verify_sums, write_sums
from attnlab.errors import AttnlabWarning, DataError, closest
from attnlab.machine import cache_folder

from ..cache import hash_of, write_folder
from ..sources.source import Source
from .builders import (
    BERT,
    CHARACTERS,
    ROBERTA,
    WORDS,
    FastTokenizer,
    build_bpe,
    build_characters,
    build_wordpiece,
    build_words,
    find_roles,
    parse_backend,
    wrap,
)

Kind = Literal["wordpiece", "bpe", "word", "char"]
TOKENIZER_KINDS: tuple[Kind, ...] = ("wordpiece", "bpe", "word", "char")
ALPHABET = 1000
"""Maximum number of characters that word pieces consist of: those that occur in most words."""
FORMAT = 1
"""Part of the key in the cache; raised when training gives other tokenizers."""


@dataclass(frozen=True)
class TokenizerSettings:
    """The settings that determine a tokenizer for a text. A `vocab_size` of 0 sets no limit."""

    kind: Kind
    vocab_size: int
    min_count: int
    lowercase: bool

    @property
    def limits(self) -> dict[str, Any]:
        """The arguments that all trainers of `tokenizers` take."""
        return {"vocab_size": self.vocab_size, "min_frequency": self.min_count, "show_progress": False}


DEFAULTS = {
    "wordpiece": TokenizerSettings("wordpiece", 8192, 2, lowercase=True),
    "bpe": TokenizerSettings("bpe", 8192, 2, lowercase=False),
    "word": TokenizerSettings("word", 0, 3, lowercase=False),
    "char": TokenizerSettings("char", 0, 1, lowercase=False),
}


def train_tokenizer(
    source: Source | Sequence[str], kind: Kind = "wordpiece", vocab_size: int | None = None,
    min_count: int | None = None, lowercase: bool | None = None,
) -> FastTokenizer:  # fmt: skip
    """Train a tokenizer on the documents of a source, or load it from the cache.

    `kind` is 'wordpiece' (as BERT), 'bpe' (byte-level, as RoBERTa), 'word' (separated by white space) or 'char'.
    `vocab_size` includes the special tokens, and is unlimited for words and characters unless given. `min_count` is the
    minimum count of a pair, a word or a character.
    """
    if kind not in TOKENIZER_KINDS:
        hint = closest(str(kind), TOKENIZER_KINDS)
        raise DataError(f"a tokenizer's kind is one of {', '.join(TOKENIZER_KINDS)}, not '{kind}'{hint}")
    changes: dict[str, Any] = {"vocab_size": vocab_size, "min_count": min_count, "lowercase": lowercase}
    plan = replace(DEFAULTS[kind], **{name: value for name, value in changes.items() if value is not None})
    least = {"wordpiece": len(BERT) + 2, "bpe": 5 + 256, "word": 0, "char": 0}[kind]
    if plan.vocab_size < least:
        raise DataError(f"a '{kind}' tokenizer needs a vocab_size of at least {least}; got {plan.vocab_size}")
    if plan.min_count < 1:
        raise DataError(f"min_count is the minimum count of a pair or a word, at least 1; got {plan.min_count}")
    identity = source.identity if isinstance(source, Source) else hash_of(list(source))
    folder = cache_folder() / "tokenizers" / hash_of([FORMAT, identity, asdict(plan)])[:32]
    _remove_if_damaged(folder)
    if not (folder / "tokenizer.json").exists():
        tokenizer = _train(source, plan)
        with write_folder(folder) as temporary:
            (temporary / "tokenizer.json").write_text(tokenizer.backend_tokenizer.to_str(), encoding="utf-8")
            (temporary / "index.json").write_text(json.dumps({"format": FORMAT}), encoding="utf-8")
            write_sums(temporary, ["tokenizer.json"])
    return _read_cached(folder / "tokenizer.json")


def _remove_if_damaged(folder: Path) -> None:
    try:
        verify_sums(folder)
    except DamageError as error:
        what = str(error).split(";")[0]
        warnings.warn(f"{what}. It is in the cache, and is trained again now", AttnlabWarning, stacklevel=4)
        shutil.rmtree(folder)


def _read_cached(path: Path) -> FastTokenizer:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"the cached tokenizer {path} cannot be read ({error}); delete its folder") from error
    return wrap(parse_backend(text, path), find_roles(json.loads(text)))


def _train(source: Source | Sequence[str], plan: TokenizerSettings) -> FastTokenizer:
    if plan.kind == "word":
        words = _count_words(source, build_words(_number(WORDS.values())).backend_tokenizer, plan)
        return build_words(_number([*WORDS.values(), *words]), plan.lowercase)
    if plan.kind == "char":
        return build_characters(_number([*CHARACTERS.values(), *_count_characters(source, plan)]), plan.lowercase)
    if plan.kind == "wordpiece":
        return _train_word_pieces(source, plan)
    return _train_byte_pairs(source, plan)


def _count_words(source: Source | Sequence[str], like: Tokenizer, plan: TokenizerSettings) -> list[str]:
    """Return the words with the minimum count, most frequent first, as another tokenizer splits the text."""
    counter = Tokenizer(models.WordLevel())
    counter.normalizer = normalizers.Lowercase() if plan.kind == "word" and plan.lowercase else like.normalizer
    counter.pre_tokenizer = like.pre_tokenizer
    limit = plan.vocab_size - len(WORDS) if plan.kind == "word" and plan.vocab_size else 1 << 40
    least = plan.min_count if plan.kind == "word" else 1
    trainer = trainers.WordLevelTrainer(vocab_size=limit, min_frequency=least, show_progress=False)
    counter.train_from_iterator(_read_documents(source), trainer)
    ids = counter.get_vocab()
    return [word for word in sorted(ids, key=ids.__getitem__) if word not in WORDS.values()]


def _count_characters(source: Source | Sequence[str], plan: TokenizerSettings) -> list[str]:
    """Return the characters with the minimum count, most frequent first."""
    counts: Counter[str] = Counter()
    for text in _read_documents(source):
        counts.update(text.lower() if plan.lowercase else text)
    frequent = sorted((-count, letter) for letter, count in counts.items() if count >= plan.min_count)
    limit = max(0, plan.vocab_size - len(CHARACTERS)) if plan.vocab_size else None
    return [letter for _, letter in frequent[:limit]]


def _train_word_pieces(source: Source | Sequence[str], plan: TokenizerSettings) -> FastTokenizer:
    """Train BERT's word pieces.

    `tokenizers` numbers the pieces ##a, ##b … in the order of a hash table, which differs between processes, and breaks
    ties between merges by these numbers. So the words are counted first and the pieces given in a fixed order.
    """
    empty = build_wordpiece(_number(BERT.values()), plan.lowercase).backend_tokenizer
    words = _count_words(source, empty, plan)
    counts = Counter(letter for word in words for letter in set(word))
    alphabet = sorted(counts, key=lambda letter: (-counts[letter], letter))[:ALPHABET]
    within = {letter for word in words for letter in word[1:]}
    continuing = [f"##{letter}" for letter in sorted(alphabet) if letter in within]
    pieces: dict[str, Any] = {"initial_alphabet": alphabet, "limit_alphabet": len(alphabet)}
    trainer = trainers.WordPieceTrainer(special_tokens=[*BERT.values(), *continuing], **pieces, **plan.limits)
    empty.train_from_iterator(_read_documents(source), trainer)
    return build_wordpiece(empty.get_vocab(with_added_tokens=False), plan.lowercase)


def _train_byte_pairs(source: Source | Sequence[str], plan: TokenizerSettings) -> FastTokenizer:
    specials = list(dict.fromkeys(ROBERTA.values()))
    backend = build_bpe(_number(specials), []).backend_tokenizer
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(special_tokens=specials, initial_alphabet=alphabet, **plan.limits)
    if plan.lowercase:
        backend.normalizer = normalizers.Lowercase()
    backend.train_from_iterator(_read_documents(source), trainer)
    return wrap(backend, ROBERTA)


def _read_documents(source: Source | Sequence[str]) -> Iterator[str]:
    return source.documents() if isinstance(source, Source) else iter(source)


def _number(tokens: Iterable[str]) -> dict[str, int]:
    return {token: number for number, token in enumerate(tokens)}
