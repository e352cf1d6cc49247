"""A token file: a folder with all tokens of a corpus in one memory-mapped array.

tokens.bin holds the documents one after another, each followed by the separator; documents.bin where each ends;
tokenizer.json the tokenizer; index.json counts, hashes and the origin of the file.
"""

from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnlab.checksums import DamageError, hash_file, unseal_json
from attnlab.errors import DataError

from ..tokenizers.builders import FastTokenizer, parse_backend, wrap
from ..tokenizers.vocabulary import Vocabulary

FORMAT = 1
TOKENS, DOCUMENTS, TOKENIZER, INDEX = "tokens.bin", "documents.bin", "tokenizer.json", "index.json"


@dataclass(frozen=True, eq=False)
class TokenFile:
    """The tokens of a corpus, in the order of its documents."""

    folder: Path
    hash: str
    """A hash of the source, the cleaning and the tokenizer."""
    num_tokens: int
    """Tokens of text; separators do not count."""
    num_documents: int
    num_empty: int
    """Documents without tokens, which were omitted."""
    num_unknown: int
    dtype: str
    hashes: dict[str, str]
    roles: dict[str, str]
    made_of: dict[str, Any]

    @classmethod
    def open(cls, folder: str | Path, verify: bool = True) -> Self:
        """Open a token file. The sizes of its files are always checked, and their hashes if `verify` is True."""
        path = Path(folder)
        try:
            content = unseal_json((path / INDEX).read_bytes())
        except FileNotFoundError as error:
            raise DataError(f"{path} is not a token file: it has no {INDEX}; make one with data.pack") from error
        except DamageError as error:
            raise _refuse_damaged(path, f"{INDEX} {error}") from error
        except (OSError, ValueError, RecursionError) as error:
            raise _refuse_damaged(path, f"{INDEX} cannot be read ({error})") from error
        names = {"format", "key", *(field.name for field in fields(cls))} - {"folder", "hash"}
        if not isinstance(content, dict) or set(content) != names or content.pop("format") != FORMAT:
            raise _refuse_damaged(path, f"{INDEX} is not of format {FORMAT}")
        file = cls(path, content.pop("key"), **content)
        file._check_sizes()
        if verify:
            for name, expected in file.hashes.items():
                if _hash_file(path / name) != expected:
                    raise _refuse_damaged(path, f"{name} is not what was written")
        return file

    @cached_property
    def tokens(self) -> NDArray[Any]:
        """All tokens, with a separator after each document, memory-mapped."""
        return np.memmap(self.folder / TOKENS, dtype=self.dtype, mode="r")

    @cached_property
    def ends(self) -> NDArray[np.int64]:
        """Where each document ends in `tokens`, after its separator, memory-mapped."""
        return np.memmap(self.folder / DOCUMENTS, dtype=np.int64, mode="r")

    @cached_property
    def tokenizer(self) -> FastTokenizer:
        """The tokenizer that made the tokens."""
        path = self.folder / TOKENIZER
        return wrap(parse_backend(path.read_text(encoding="utf-8"), path), self.roles)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary of the tokenizer."""
        return Vocabulary.of(self.tokenizer)

    def document(self, number: int) -> NDArray[np.int64]:
        """Return the tokens of one document, without its separator."""
        starts, lengths = self.spans(np.array([number]))
        return np.asarray(self.tokens[starts[0] : starts[0] + lengths[0]], dtype=np.int64)

    def spans(self, numbers: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where documents begin and how many tokens each has."""
        chosen = np.asarray(numbers, dtype=np.int64)
        ends = np.asarray(self.ends[chosen])
        starts = np.where(chosen > 0, np.asarray(self.ends[np.maximum(chosen - 1, 0)]), 0)
        return starts, ends - starts - 1

    def _check_sizes(self) -> None:
        width = np.dtype(self.dtype).itemsize
        num_stored = self.num_tokens + self.num_documents
        for name, expected in ((TOKENS, num_stored * width), (DOCUMENTS, self.num_documents * 8)):
            path = self.folder / name
            size = path.stat().st_size if path.exists() else 0
            if size != expected:
                raise _refuse_damaged(self.folder, f"{name} has {size:,} bytes, but {expected:,} were written")


def _hash_file(path: Path) -> str:
    try:
        return hash_file(path)
    except OSError as error:
        raise _refuse_damaged(path.parent, f"{path.name} cannot be read ({error.strerror})") from error


def _refuse_damaged(folder: Path, problem: str) -> DataError:
    return DataError(f"the token file {folder} is damaged: {problem}; delete the folder and pack again")
