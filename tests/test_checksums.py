"""Every flipped bit and every cut of what was written is noticed, and what has no checksum is read as before."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from attnlab.checksums import ENTRY, SUMS, DamageError, seal, seal_json, unseal, unseal_json, verify_sums, write_sums

CONTENT = {"steps": [3, 4], "lr": 1e-3, "text": "ümlaut \ud800 🎲", "inner": {"a": None}}


def damage(whole: bytes) -> list[bytes]:
    """Flip every bit of a text, and cut it at every place."""
    flips = [
        whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :]
        for place in range(len(whole))
        for bit in range(8)
    ]
    return [*flips, *(whole[:place] for place in range(len(whole)))]


def is_noticed(read: Callable[[bytes], Any], damaged: bytes) -> bool:
    """Tell whether a damaged text is refused, or read with everything that was in it."""
    try:
        content = read(damaged)
    except (ValueError, RecursionError):
        return True
    # A flip inside the name of the last entry leaves all others as they were.
    return isinstance(content, dict) and {name: content.get(name) for name in CONTENT} == CONTENT


def test_an_object_with_its_checksum_is_json_and_comes_back() -> None:
    text = seal_json(CONTENT)
    assert json.loads(text).keys() == {*CONTENT, ENTRY}
    assert unseal_json(text) == CONTENT


def test_no_flip_and_no_cut_of_an_object_is_accepted() -> None:
    assert [damaged for damaged in damage(seal_json(CONTENT)) if not is_noticed(unseal_json, damaged)] == []


def test_an_object_that_was_changed_on_purpose_can_be_read_again() -> None:
    changed = json.loads(seal_json(CONTENT)) | {"lr": 2e-3}
    with pytest.raises(DamageError, match=f"if it was changed on purpose, delete its last entry, '{ENTRY}'"):
        unseal_json(json.dumps(changed).encode())
    del changed[ENTRY]
    assert unseal_json(json.dumps(changed).encode()) == CONTENT | {"lr": 2e-3}
    assert unseal_json(b"[1, 2]") == [1, 2]


def test_no_flip_and_no_cut_of_bytes_is_accepted() -> None:
    body = b"some library"
    assert unseal(seal(body), Path("file")) == body
    for damaged in damage(seal(body)):
        with pytest.raises(DamageError, match=r"file is (damaged|empty)"):
            unseal(damaged, Path("file"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text('{"a": 1}')
    (tmp_path / "weights.safetensors").write_bytes(bytes(range(40)))
    (tmp_path / "README.md").write_text("a card")
    write_sums(tmp_path, ["weights.safetensors", "config.json"])
    return tmp_path


@pytest.mark.parametrize("name", ["config.json", "weights.safetensors"])
def test_no_flip_and_no_cut_in_a_folder_is_accepted(folder: Path, name: str) -> None:
    whole = (folder / name).read_bytes()
    verify_sums(folder)
    for damaged in damage(whole)[:: 7 if name == "config.json" else 1]:
        (folder / name).write_bytes(damaged)
        with pytest.raises(DamageError, match=f"{name} is not what was written"):
            verify_sums(folder)
    (folder / name).unlink()
    with pytest.raises(DamageError, match=f"{name} is missing, but {SUMS} lists it"):
        verify_sums(folder)


def test_a_damaged_list_is_refused_or_still_right(folder: Path) -> None:
    whole = (folder / SUMS).read_bytes()
    refused = 0
    for damaged in damage(whole):
        (folder / SUMS).write_bytes(damaged)
        try:
            verify_sums(folder)
        except DamageError:
            refused += 1
    assert refused > 0.9 * len(damage(whole))  # a cut between two lines, or of the last newline, leaves nothing false


def test_files_without_a_checksum_have_nothing_to_verify(folder: Path) -> None:
    (folder / "README.md").write_text("an edited card")
    verify_sums(folder)
    (folder / "weights.safetensors").write_bytes(b"")
    verify_sums(folder, skipped=".safetensors")
    (folder / SUMS).unlink()
    verify_sums(folder)


def test_the_list_is_that_of_sha256sum(folder: Path) -> None:
    subprocess.run(["sha256sum", "--check", "--quiet", SUMS], cwd=folder, check=True)
