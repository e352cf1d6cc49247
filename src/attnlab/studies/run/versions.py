"""What has to be the same wherever runs of one study are trained: attnlab's code, torch and transformers."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

NAMES = ("attnlab", "torch", "transformers")
CODE = Path(__file__).parents[2]
KINDS = (".py", ".cpp")
"""Files that compute."""


@functools.cache
def versions() -> dict[str, str]:
    """Return what this machine computes with; of attnlab also a hash of its code, which changes between releases."""
    total = hashlib.sha256()
    for file in sorted(CODE.rglob("*")):
        if file.suffix in KINDS:
            total.update(f"{file.relative_to(CODE)} {hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    found = {name: version(name) for name in NAMES}
    return {**found, "attnlab": f"{found['attnlab']} (code {total.hexdigest()[:8]})"}


def differences(wanted: Mapping[str, str], found: Mapping[str, str]) -> str:
    """Say what is other than it was wanted, or nothing."""
    wrong = [name for name in wanted if found.get(name) != wanted[name]]
    return ", ".join(f"{name} {found.get(name)} where the study has {wanted[name]}" for name in wrong)
