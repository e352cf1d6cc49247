"""A token file: a folder with all tokens of a corpus in one memory-mapped array.

tokens.bin holds the documents one after another, each followed by the separator; documents.bin where each ends;
tokenizer.json the tokenizer; index.json counts, hashes and the origin of the file.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnlab.errors import DataError

from ..tokenizers.builders import parse_backend, wrap
from ..tokenizers.vocabulary import Vocabulary

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

FORMAT = 1
TOKENS, DOCUMENTS, TOKENIZER, INDEX = "tokens.bin", "documents.bin", "tokenizer.json", "index.json"


@dataclass(frozen=True)
class Index:
    """The content of index.json."""

    format: int
    key: str
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

    def write(self, folder: Path) -> None:
        """Write the index into a folder."""
        (folder / INDEX).write_text(json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> Index:
        """Read the index of a folder."""
        try:
            content = json.loads((folder / INDEX).read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise DataError(f"{folder} is not a token file: it has no {INDEX}; make one with data.pack") from error
        except (OSError, ValueError) as error:
            raise _refuse_damaged(folder, f"{INDEX} cannot be read ({error})") from error
        names = {field.name for field in fields(cls)}
        if not isinstance(content, dict) or set(content) != names or content["format"] != FORMAT:
            raise _refuse_damaged(folder, f"{INDEX} is not of format {FORMAT}")
        return cls(**content)


@dataclass(frozen=True, eq=False)
class TokenFile:
    """The tokens of a corpus, in the order of its documents."""

    folder: Path
    index: Index

    @classmethod
    def open(cls, folder: str | Path, verify: bool = True) -> TokenFile:
        """Open a token file. The sizes of its files are always checked, and their hashes if `verify` is True."""
        path = Path(folder)
        file = cls(path, Index.read(path))
        file._check_sizes()
        if verify:
            for name, expected in file.index.hashes.items():
                if _hash_file(path / name) != expected:
                    raise _refuse_damaged(path, f"{name} is not what was written")
        return file

    @property
    def num_tokens(self) -> int:
        """The number of tokens of text; separators do not count."""
        return self.index.num_tokens

    @property
    def num_documents(self) -> int:
        """The number of documents."""
        return self.index.num_documents

    @property
    def hash(self) -> str:
        """A hash of the source, the cleaning and the tokenizer."""
        return self.index.key

    @cached_property
    def tokens(self) -> NDArray[Any]:
        """All tokens, with a separator after each document, memory-mapped."""
        return np.memmap(self.folder / TOKENS, dtype=self.index.dtype, mode="r")

    @cached_property
    def ends(self) -> NDArray[np.int64]:
        """Where each document ends in `tokens`, after its separator, memory-mapped."""
        return np.memmap(self.folder / DOCUMENTS, dtype=np.int64, mode="r")

    @cached_property
    def tokenizer(self) -> PreTrainedTokenizerFast:
        """The tokenizer that made the tokens."""
        path = self.folder / TOKENIZER
        return wrap(parse_backend(path.read_text(encoding="utf-8"), path), self.index.roles)

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
        width = np.dtype(self.index.dtype).itemsize
        stored = self.index.num_tokens + self.index.num_documents
        for name, expected in ((TOKENS, stored * width), (DOCUMENTS, self.index.num_documents * 8)):
            path = self.folder / name
            size = path.stat().st_size if path.exists() else 0
            if size != expected:
                raise _refuse_damaged(self.folder, f"{name} has {size:,} bytes, but {expected:,} were written")


def _hash_file(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise _refuse_damaged(path.parent, f"{path.name} cannot be read ({error.strerror})") from error


def _refuse_damaged(folder: Path, problem: str) -> DataError:
    return DataError(f"the token file {folder} is damaged: {problem}; delete the folder and pack again")
