"""What is embedded needs nothing, is the same for the same name, and is what it says it is."""

from __future__ import annotations

import subprocess
import sys

import pytest

from attnlab.data import SETS, open_source
from attnlab.errors import DataError


def test_the_same_name_is_the_same_content_in_another_process() -> None:
    code = "from attnlab.data import *\nprint(*(f'{name}={open_source(f\"embedded:{name}\").hash}' for name in SETS))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [f"{name}={open_source(f'embedded:{name}').hash}" for name in SETS]


@pytest.mark.parametrize("name", ["squad", "boolq", "mqar", "copy", "induction", "averaging", "iid"])
def test_a_seed_and_a_split_are_another_content(name: str) -> None:
    hashes = {
        open_source(f"embedded:{name}").hash,
        open_source(f"embedded:{name}?seed=1").hash,
        open_source(f"embedded:{name}", split="dev").hash,
    }
    assert len(hashes) == 3


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("embedded:mqr", "no set is named 'embedded:mqr', did you mean 'mqar'"),
        ("embedded:mqar?pair=3", "has no argument 'pair', did you mean 'pairs'"),
        ("embedded:mqar?pairs=x", "argument 'pairs' needs a whole number, not 'x', for example 4"),
        ("embedded:mqar?pairs=40", "needs pairs between 1 and 31, as there are 31 keys; it got pairs=40"),
        ("embedded:mqar?pairs=30", "needs a length of at least 4·pairs = 120; it got length=64"),
        ("embedded:iid?vocab=1", "needs vocab of at least 4"),
        ("embedded:averaging?marked=64", "needs marked between 1 and 63"),
        ("embedded:boolq?yes=2", "a share of questions must be between 0 and 1"),
        ("embedded:squad?articles=0", "needs counts of at least 1"),
        ("embedded:pydoc?seed=1", "has no argument 'seed'; it takes punctuation, paragraphs"),
    ],
)
def test_a_wrong_name_is_answered_with_what_there_is(name: str, message: str) -> None:
    with pytest.raises(DataError, match=message.replace("?", r"\?")):
        open_source(name)


def test_a_split_that_is_not_there_is_refused() -> None:
    with pytest.raises(DataError, match="has no split 'test'"):
        open_source("embedded:pydoc", split="test")


def test_a_probe_has_no_documents() -> None:
    with pytest.raises(DataError, match="has token ids and no text"):
        list(open_source("embedded:mqar").documents())
