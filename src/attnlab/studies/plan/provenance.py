"""What a study was run with: versions, machine, commit, files of stages, and the command that repeats it."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from attnlab.errors import StudyError
from attnlab.machine import processor_name

VERSIONS = ("attnlab", "torch", "transformers", "numpy", "scipy")


def provenance() -> dict[str, Any]:
    """Return what this process runs with."""
    return {
        **{name: version(name) for name in VERSIONS},
        "python": platform.python_version(),
        "host": platform.node(),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": processor_name(),
        "cores": os.cpu_count(),
        "commit": commit(),
    }


def commit() -> str | None:
    """Return the commit of the checkout that attnlab runs from, marked where it was changed; None outside of one."""
    folder = Path(__file__).parent
    try:
        asked = [
            subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=10, check=True)
            for words in (("rev-parse", "HEAD"), ("status", "--porcelain", "--untracked-files=no", "--", "."))
        ]
    except (OSError, subprocess.SubprocessError):  # no git, or no checkout: an installed package has its version
        return None
    return asked[0].stdout.strip() + (" with changes" if asked[1].stdout.strip() else "")


def plugin_files(plugins: Sequence[str]) -> list[dict[str, str]]:
    """Return name, hash and source of the files that stages of the user's own come from."""
    found = []
    for plugin in plugins:
        try:
            content = Path(plugin).read_bytes()
        except OSError as error:
            raise StudyError(
                f"cannot read {plugin}, which was given for its stages: {error.strerror}; give a Python file that is "
                "there"
            ) from error
        text = content.decode("utf-8", errors="replace")
        found.append({"file": Path(plugin).name, "sha256": hashlib.sha256(content).hexdigest(), "text": text})
    return found


def command(
    file: str, out: str, budget: str | None = None, assign: Mapping[str, Any] | None = None,
    data: Mapping[str, str] | None = None, plugins: Sequence[str] = (), **numbers: int,
) -> str:  # fmt: skip
    """Write the command that runs a study as it was run; numbers: options such as workers, where they are not 1."""
    words = ["attnlab", "run", file, "--out", out]
    words += ["--budget", budget] if budget is not None else []
    for name, value in numbers.items():
        words += [f"--{name}", str(value)] if value != 1 else []
    for name, place in (data or {}).items():
        words += ["--data", f"{name}={place}"]
    for name, value in (assign or {}).items():
        words += ["--set", f"{name}={'none' if value is None else json.dumps(value)}"]
    for plugin in plugins:
        words += ["--plugin", plugin]
    return shlex.join(words)
