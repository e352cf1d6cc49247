"""A cache of the tests' own, and a small tokenizer and token file that many of them share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from attnlab.data import TokenFile, open_source, pack, train_tokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTNLAB_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def word_pieces(own_cache: None) -> PreTrainedTokenizerFast:
    return train_tokenizer(open_source("embedded:squad?articles=8"), "wordpiece", 300)


@pytest.fixture(scope="session")
def packed(word_pieces: PreTrainedTokenizerFast) -> TokenFile:
    return pack(open_source("embedded:squad?articles=8"), word_pieces)
