"""Packing: the documents of a source, encoded in parallel and written into a token file, in constant memory.

Batches of text are encoded by the threads of `tokenizers`, two at a time so that reading does not delay them, and
written in the order of reading, so the file is the same on any number of cores.
"""

import hashlib
import json
import shutil
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from attnlab.errors import AttnlabWarning, DataError
from attnlab.inputs import expand_path
from attnlab.machine import cache_folder

from ..cache import hash_of, write_folder
from ..sources.cleaning import Cleaning
from ..sources.source import Source
from ..tokenizers.builders import FastTokenizer
from ..tokenizers.vocabulary import ROLES, Vocabulary, hash_tokenizer
from .tokenfile import DOCUMENTS, FORMAT, INDEX, TOKENIZER, TOKENS, TokenFile

Progress = Callable[[int, int], None]
"""Called with the numbers of documents and tokens so far."""

BATCH = 1 << 19
"""Characters encoded at a time: their encodings take about 50 times their memory."""
AHEAD = 2
PIECE = 1 << 18
"""Longer documents are cut into pieces of about this many characters, which encode to the same tokens."""
CUT_SAFELY = {"BertPreTokenizer", "ByteLevel", "WhitespaceSplit", "Whitespace"}
"""Pre-tokenizers that always split at a single space, so text can be cut before one."""

Encoded = tuple[NDArray[Any], NDArray[np.int64]]
"""The ids of documents, each followed by a separator, and their lengths including it."""


def pack(
    source: Source, tokenizer: FastTokenizer, target: str | Path | None = None, cleaning: str | Cleaning | None = None,
    progress: Progress | None = None,
) -> TokenFile:  # fmt: skip
    """Encode a source into a token file, or open the one that was made from the same source and settings.

    `target` is its folder; by default it is in the user's cache.
    """
    cleaning = cleaning if isinstance(cleaning, Cleaning) else Cleaning.parse(cleaning or "")
    origin = {"source": source.identity, "tokenizer": hash_tokenizer(tokenizer)}
    made_of = {**origin, "cleaning": str(cleaning), "format": FORMAT}
    key = hash_of(made_of)
    folder = cache_folder() / "tokens" / key[:32] if target is None else expand_path(target)
    is_taken = folder.exists() and (folder.is_file() or any(folder.iterdir()))
    if is_taken and (existing := _open_existing(folder, key, is_cache=target is None)):
        return existing
    vocabulary, backend = Vocabulary.of(tokenizer), plain_backend(tokenizer)
    if vocabulary.separator is None:
        raise DataError("packing needs a token at the end of documents; give the tokenizer a sep or an eos token")
    with write_folder(folder) as temporary:
        documents, removed = cleaning.run(source.documents())
        with (temporary / TOKENS).open("wb") as tokens, (temporary / DOCUMENTS).open("wb") as ends:
            writer = _Writer(vocabulary, tokens, ends)
            for encoded in encode(documents, backend, vocabulary):
                writer.write(*encoded)
                if progress is not None:
                    progress(writer.counts["num_documents"], writer.counts["num_tokens"])
        if not writer.counts["num_documents"]:
            raise DataError(f"{source.name} has no document with a token; there is nothing to pack")
        text = backend.to_str()
        (temporary / TOKENIZER).write_text(text, encoding="utf-8")
        hashes = {name: digest.hexdigest() for name, (_, digest) in writer.outputs.items()}
        roles = {role: token for role in ROLES if (token := getattr(tokenizer, f"{role}_token")) is not None}
        index = {
            "format": FORMAT,
            "key": key,
            **writer.counts,
            "dtype": np.dtype(vocabulary.dtype).name,
            "hashes": {**hashes, TOKENIZER: hashlib.sha256(text.encode()).hexdigest()},
            "roles": roles,
            "made_of": {**made_of, "name": source.name, "removed": removed},
        }
        (temporary / INDEX).write_text(json.dumps(index, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return TokenFile.open(folder, verify=False)


def _open_existing(folder: Path, key: str, is_cache: bool) -> TokenFile | None:
    """Open the token file of a folder; a damaged one is removed if it is in the cache."""
    try:
        file = TokenFile.open(folder)
    except DataError as error:
        if not is_cache:
            raise
        warnings.warn(f"{error}. It is in the cache and is packed again now", AttnlabWarning, stacklevel=3)
        shutil.rmtree(folder)
        return None
    if file.hash != key:
        raise DataError(f"{folder} already holds tokens of {file.made_of.get('name')}; give another folder")
    return file


class _Writer:
    """Writes encoded documents, and counts and hashes them."""

    def __init__(self, vocabulary: Vocabulary, tokens: BinaryIO, ends: BinaryIO) -> None:
        self.unknown = vocabulary.unknown
        self.counts = dict.fromkeys(("num_tokens", "num_documents", "num_empty", "num_unknown"), 0)
        self.outputs = {TOKENS: (tokens, hashlib.sha256()), DOCUMENTS: (ends, hashlib.sha256())}

    def write(self, ids: NDArray[Any], lengths: NDArray[np.int64]) -> None:
        """Write the ids of a batch, and where its documents end."""
        kept = lengths[lengths > 1]
        position = self.counts["num_tokens"] + self.counts["num_documents"]
        self.counts["num_tokens"] += ids.size - kept.size
        self.counts["num_documents"] += kept.size
        self.counts["num_empty"] += lengths.size - kept.size
        self.counts["num_unknown"] += 0 if self.unknown is None else int((ids == self.unknown).sum())
        for name, array in ((TOKENS, ids), (DOCUMENTS, position + np.cumsum(kept))):
            file, digest = self.outputs[name]
            content = array.tobytes()
            digest.update(content)
            file.write(content)


def encode(documents: Iterator[str], backend: Tokenizer, vocabulary: Vocabulary) -> Iterator[Encoded]:
    """Yield batches of encoded documents; empty documents have length 1 and no ids."""
    can_cut = type(backend.pre_tokenizer).__name__ in CUT_SAFELY
    waiting: deque[Future[Encoded]] = deque()
    with ThreadPoolExecutor(AHEAD) as pool:
        try:
            for batch in _make_batches(documents, can_cut):
                if len(waiting) == AHEAD:
                    yield waiting.popleft().result()
                waiting.append(pool.submit(_encode_batch, backend, batch, vocabulary))
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _encode_batch(backend: Tokenizer, batch: list[list[str]], vocabulary: Vocabulary) -> Encoded:
    encodings = iter(backend.encode_batch_fast(list(chain.from_iterable(batch)), add_special_tokens=False))
    parts: list[list[int]] = []
    lengths = np.ones(len(batch), dtype=np.int64)
    for number, pieces in enumerate(batch):
        ids = [next(encodings).ids for _ in pieces]
        lengths[number] += sum(map(len, ids))
        if lengths[number] > 1:
            parts += [*ids, [int(vocabulary.separator or 0)]]
    return np.fromiter(chain.from_iterable(parts), dtype=vocabulary.dtype), lengths


def _make_batches(documents: Iterator[str], can_cut: bool) -> Iterator[list[list[str]]]:
    """Yield batches of at least BATCH characters; each document is a list of pieces."""
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


def plain_backend(tokenizer: FastTokenizer) -> Tokenizer:
    """Return a copy of the backend without the truncation and padding stored by earlier calls of the tokenizer."""
    backend = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    backend.no_truncation()
    backend.no_padding()
    return backend
