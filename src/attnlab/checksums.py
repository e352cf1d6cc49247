"""The SHA-256 of what was written, by which a reader knows that a file is still the same.

Bytes in a cache end with it, a JSON object has it as its last entry, and a folder that other libraries read too has a
file SHA256SUMS, which `sha256sum --check` reads. Files without one, of other programs or older versions, have nothing
to verify. This file imports the standard library only, because the build of a wheel (hatch_build.py) runs it by itself.
"""

import hashlib
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

SUMS = "SHA256SUMS"
ENTRY = "sha256"
"""The name of the last entry of a JSON object."""
_LENGTH = hashlib.sha256().digest_size
_LAST = re.compile(rb',\n  "%s": "([0-9a-f]{64})"\n}\n\Z' % ENTRY.encode())
_LINE = re.compile(r"([0-9a-f]{64})  ([^/\x00]+)")
_DIFFERS = "is not what was written: its SHA-256 differs"


class DamageError(ValueError):
    """A file differs from what was written; the message says which one and how."""


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file."""
    if path.exists() and not path.is_file():  # a pipe would never end
        raise DamageError(f"{path} is not a file")
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def seal(body: bytes) -> bytes:
    """Return bytes with their SHA-256 at the end."""
    return body + hashlib.sha256(body).digest()


def unseal(content: bytes, file: Path) -> bytes:
    """Return the bytes that were sealed; raise DamageError if they differ. file: for the message."""
    body, digest = content[:-_LENGTH], content[-_LENGTH:]
    if hashlib.sha256(body).digest() != digest:
        raise DamageError(f"{file} is damaged (its checksum differs)" if content else f"{file} is empty")
    return body


def seal_json(content: dict[str, Any]) -> bytes:
    """Return an object as JSON whose last entry is the SHA-256 of the text without that entry."""
    assert content, "an object needs an entry before the last one"
    assert ENTRY not in content, f"'{ENTRY}' is the name of the entry that is added"
    text = json.dumps(content, indent=2) + "\n"
    return f'{text[:-3]},\n  "{ENTRY}": "{hashlib.sha256(text.encode()).hexdigest()}"\n}}\n'.encode()


def unseal_json(text: bytes) -> Any:
    """Parse JSON, verify its SHA-256 if it has one and leave it out.

    Raise DamageError if the text differs from what was written, and ValueError if it is not JSON.
    """
    content = parse_json(text)
    if isinstance(content, dict) and ENTRY in content:
        last = _LAST.search(text)
        if last is None or hashlib.sha256(text[: last.start()] + b"\n}\n").hexdigest() != last[1].decode():
            raise DamageError(f"{_DIFFERS}; if it was changed on purpose, delete its last entry, '{ENTRY}'")
        del content[ENTRY]
    return content


def parse_json(text: bytes) -> Any:
    """Parse JSON; NaN and Infinity, which Python accepts in it, are errors."""

    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def write_sums(folder: Path, names: Iterable[str]) -> None:
    """Write the SHA-256 of files of a folder, in place of those that were there."""
    lines = [f"{hash_file(folder / name)}  {name}\n" for name in sorted(names)]
    (folder / SUMS).unlink(missing_ok=True)
    with (folder / SUMS).open("x", encoding="utf-8") as file:
        file.writelines(lines)


def verify_sums(folder: Path, *, skipped: str | None = None) -> None:
    """Raise DamageError if a file of a folder differs from its SHA-256 in SHA256SUMS; a folder without it passes.

    skipped: the ending of files that are not verified.
    """
    if not (folder / SUMS).exists():
        return
    intended = f"if it was changed on purpose, delete {folder / SUMS}"
    if not (folder / SUMS).is_file():
        raise DamageError(f"{folder / SUMS} is not a file; {intended}")
    try:
        lines = (folder / SUMS).read_bytes().decode().split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DamageError(f"{folder / SUMS} cannot be read ({error}); {intended}") from error
    for line in lines[:-1] if lines[-1] == "" else lines:
        match = _LINE.fullmatch(line)
        if match is None:
            raise DamageError(f"{folder / SUMS} is not what was written; {intended}")
        digest, name = match.groups()
        if skipped is not None and name.endswith(skipped):
            continue
        try:
            is_same = hash_file(folder / name) == digest
        except FileNotFoundError as error:
            raise DamageError(f"{folder / name} is missing, but {SUMS} lists it; {intended}") from error
        except OSError as error:
            raise DamageError(f"{folder / name} cannot be read: {error.strerror or error}") from error
        if not is_same:
            raise DamageError(f"{folder / name} {_DIFFERS}; restore it from a copy, or {intended}")
