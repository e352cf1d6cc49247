"""Packing: a source's documents encoded in parallel and written into a token file, in memory that does not grow.

Batches of text are encoded by `tokenizers`' own threads, two at a time so that none waits for the reading, and are
written in the order they were read: the file is the same on any number of cores.
"""

from __future__ import annotations

import hashlib
import shutil
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from attnlab.errors import AttnlabWarning, DataError
from attnlab.machine import cache_folder

from ..cache import hash_of, writing_aside
from ..sources.cleaning import Cleaning
from ..sources.source import Source
from ..tokenizers.vocabulary import ROLES, Vocabulary, hash_tokenizer
from .tokenfile import DOCUMENTS, FORMAT, TOKENIZER, TOKENS, Index, TokenFile

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

Progress = Callable[[int, int], None]
"""Called with the number of documents and of tokens so far."""

BATCH = 1 << 19
"""Characters encoded at once: what they become takes some 50 times their own memory."""
AHEAD = 2
PIECE = 1 << 18
"""A longer document is cut into pieces of so many characters, which encode to the same tokens."""
CUT_SAFELY = {"BertPreTokenizer", "ByteLevel", "WhitespaceSplit", "Whitespace"}
"""Pre-tokenizers that never look across a single space, so that text may be cut before one."""


def pack(
    source: Source,
    tokenizer: PreTrainedTokenizerFast,
    target: str | Path | None = None,
    cleaning: str | Cleaning | None = None,
    progress: Progress | None = None,
) -> TokenFile:
    """Encode a source into a token file, or find the one that was made of the same before.

    `target` is the folder it goes into; left out, it is kept in the user's cache.
    """
    cleaning = cleaning if isinstance(cleaning, Cleaning) else Cleaning.parse(cleaning or "")
    made_of = {
        "source": source.identity,
        "tokenizer": hash_tokenizer(tokenizer),
        "cleaning": str(cleaning),
        "format": FORMAT,
    }
    key = hash_of(made_of)
    folder = cache_folder() / "tokens" / key[:32] if target is None else Path(target).expanduser()
    is_taken = folder.exists() and (folder.is_file() or any(folder.iterdir()))
    if is_taken and (found := _found(folder, key, is_cache=target is None)):
        return found
    writer = Writer(Vocabulary.of(tokenizer))
    backend = plain_backend(tokenizer)
    with writing_aside(folder) as aside:
        cleaned = cleaning.run(source.documents())
        with (aside / TOKENS).open("wb") as tokens, (aside / DOCUMENTS).open("wb") as ends:
            for encoded in encode(cleaned.documents, backend, writer.vocabulary):
                writer.write(encoded, tokens, ends)
                if progress is not None:
                    progress(writer.num_documents, writer.num_tokens)
        text = backend.to_str()
        (aside / TOKENIZER).write_text(text, encoding="utf-8")
        roles = {role: getattr(tokenizer, f"{role}_token") for role in ROLES}
        writer.index(key, text, roles, {**made_of, "name": source.name, "removed": cleaned.record()}).write(aside)
    return TokenFile.open(folder, verify=False)


def _found(folder: Path, key: str, is_cache: bool) -> TokenFile | None:
    """Return the token file of a folder, or None where a damaged one of the cache was removed."""
    try:
        found = TokenFile.open(folder)
    except DataError as error:
        if not is_cache:
            raise
        warnings.warn(f"{error} — done, it is only a cache", AttnlabWarning, stacklevel=3)
        shutil.rmtree(folder)
        return None
    if found.hash != key:
        raise DataError(
            f"{folder} already holds tokens of something else ({found.index.made_of.get('name')}); give another folder"
        )
    return found


class Writer:
    """Writes encoded documents and counts what it wrote."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        if vocabulary.separator is None:
            raise DataError("packing needs a token to end documents with; give the tokenizer a sep or an eos token")
        self.vocabulary = vocabulary
        self.num_tokens = self.num_documents = self.num_empty = self.num_unknown = self.position = 0
        self.hashes = {TOKENS: hashlib.sha256(), DOCUMENTS: hashlib.sha256()}

    def write(self, encoded: tuple[NDArray[Any], NDArray[np.int64]], tokens: BinaryIO, ends: BinaryIO) -> None:
        """Write a batch: the ids with their separators, and each document's length with its own."""
        ids, lengths = encoded
        self.num_empty += int((lengths == 1).sum())
        kept = lengths[lengths > 1]
        self.num_documents += kept.size
        self.num_tokens += ids.size - kept.size
        if self.vocabulary.unknown is not None:
            self.num_unknown += int((ids == self.vocabulary.unknown).sum())
        self._append(TOKENS, tokens, ids)
        self._append(DOCUMENTS, ends, self.position + np.cumsum(kept))
        self.position += ids.size

    def index(self, key: str, tokenizer: str, roles: dict[str, str | None], made_of: dict[str, Any]) -> Index:
        """Return what index.json is to say."""
        if not self.num_documents:
            raise DataError(f"{made_of['name']} has no document with a token in it, so nothing can be packed")
        hashes = {name: digest.hexdigest() for name, digest in self.hashes.items()}
        hashes[TOKENIZER] = hashlib.sha256(tokenizer.encode()).hexdigest()
        return Index(
            format=FORMAT,
            key=key,
            num_tokens=self.num_tokens,
            num_documents=self.num_documents,
            num_empty=self.num_empty,
            num_unknown=self.num_unknown,
            dtype=np.dtype(self.vocabulary.dtype).name,
            hashes=hashes,
            roles={role: token for role, token in roles.items() if token is not None},
            made_of=made_of,
        )

    def _append(self, name: str, file: BinaryIO, array: NDArray[Any]) -> None:
        content = array.tobytes()
        self.hashes[name].update(content)
        file.write(content)


def encode(
    documents: Iterator[str], backend: Tokenizer, vocabulary: Vocabulary
) -> Iterator[tuple[NDArray[Any], NDArray[np.int64]]]:
    """Yield batches of ids, a separator after each document, with the documents' lengths; empty ones have length 1."""
    can_cut = type(backend.pre_tokenizer).__name__ in CUT_SAFELY
    waiting: deque[Future[tuple[NDArray[Any], NDArray[np.int64]]]] = deque()
    with ThreadPoolExecutor(AHEAD) as pool:
        try:
            for batch in batches(documents, can_cut):
                if len(waiting) == AHEAD:
                    yield waiting.popleft().result()
                waiting.append(pool.submit(_encode_batch, backend, batch, vocabulary))
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _encode_batch(
    backend: Tokenizer, batch: list[list[str]], vocabulary: Vocabulary
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    encodings = iter(backend.encode_batch_fast(list(chain.from_iterable(batch)), add_special_tokens=False))
    parts: list[list[int]] = []
    lengths = np.ones(len(batch), dtype=np.int64)
    for number, pieces in enumerate(batch):
        ids = [next(encodings).ids for _ in pieces]
        lengths[number] += sum(map(len, ids))
        if lengths[number] > 1:
            parts += [*ids, [int(vocabulary.separator or 0)]]
    return np.fromiter(chain.from_iterable(parts), dtype=vocabulary.dtype), lengths


def batches(documents: Iterator[str], can_cut: bool) -> Iterator[list[list[str]]]:
    """Gather documents, each as its pieces, until there are enough characters for a batch."""
    batch: list[list[str]] = []
    size = 0
    for document in documents:
        batch.append(cut(document) if can_cut and len(document) > PIECE else [document])
        size += len(document)
        if size >= BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def cut(document: str) -> list[str]:
    """Cut a document before single spaces between words, into pieces of about PIECE characters."""
    pieces, start = [], 0
    while len(document) - start > PIECE:
        end = document.find(" ", start + PIECE)
        while end != -1 and (document[end - 1].isspace() or document[end + 1 : end + 2].isspace()):
            end = document.find(" ", end + 1)
        if end == -1:
            break
        pieces.append(document[start:end])
        start = end
    return [*pieces, document[start:]]


def plain_backend(tokenizer: PreTrainedTokenizerFast) -> Tokenizer:
    """Return a copy without the truncation and padding that calls of a tokenizer leave behind in it."""
    from tokenizers import Tokenizer

    backend = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    backend.no_truncation()
    backend.no_padding()
    return backend
