"""A token file detects damage, and stores ids in the smallest integers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from attnlab.data import TokenFile, load_tokenizer, pack
from attnlab.errors import DataError

from ..writing import write_documents

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


@pytest.mark.parametrize("name", ["tokens.bin", "documents.bin", "tokenizer.json", "index.json"])
def test_damage_is_found(word_pieces: PreTrainedTokenizerFast, tmp_path: Path, name: str) -> None:
    file = pack(write_documents(tmp_path, ["Ada was born.", "Bruno wrote."]), word_pieces, tmp_path / "tokens")
    path = file.folder / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    if name != "index.json":
        with pytest.raises(DataError, match=rf"is damaged: {name} is not what was written; delete the folder"):
            TokenFile.open(file.folder)
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(DataError, match="is damaged"):
        TokenFile.open(file.folder)
    path.unlink()
    with pytest.raises(DataError, match=r"is damaged|is not a token file"):
        TokenFile.open(file.folder)


def test_large_vocabularies_take_wider_integers(tmp_path: Path) -> None:
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = [*specials, *(f"w{number}" for number in range(70_000))]
    (tmp_path / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    file = pack(write_documents(tmp_path, ["w69999 w3"]), load_tokenizer(tmp_path / "vocab.txt"), tmp_path / "tokens")
    assert file.dtype == "uint32"
    assert file.document(0).tolist() == [70_004, 8]
