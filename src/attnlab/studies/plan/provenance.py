"""Provenance of a study: versions, machine, commit, plugin files, and the command that repeats it."""

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


def collect_provenance() -> dict[str, Any]:
    """Return the versions and the machine of this process."""
    return {
        **{name: version(name) for name in VERSIONS},
        "python": platform.python_version(), "host": platform.node(),
        "system": f"{platform.system()} {platform.machine()}", "processor": processor_name(),
        "cores": os.cpu_count(), "commit": _find_commit(),
    }  # fmt: skip


def _find_commit() -> str | None:
    """Return the commit of the checkout that attnlab runs from, marked if it has changes; None outside of one."""
    command = ["git", "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty= with changes"]
    try:
        return subprocess.check_output(
            command, cwd=Path(__file__).parent, stderr=subprocess.DEVNULL, text=True, timeout=10
        ).strip()
    except (OSError, subprocess.SubprocessError):  # no git, or no checkout: an installed package has its version
        return None


def read_plugins(plugins: Sequence[str]) -> list[dict[str, str]]:
    """Return the name, hash and text of each plugin file."""
    files = []
    for plugin in plugins:
        try:
            content = Path(plugin).read_bytes()
        except OSError as error:
            advice = "give --plugin an existing Python file"
            raise StudyError(f"cannot read the plugin {plugin}: {error.strerror}; {advice}") from error
        text = content.decode("utf-8", errors="replace")
        files.append({"file": Path(plugin).name, "sha256": hashlib.sha256(content).hexdigest(), "text": text})
    return files


def write_command(
    file: str, out: str, budget: str | None = None, assign: Mapping[str, Any] | None = None,
    data: Mapping[str, str] | None = None, plugins: Sequence[str] = (), trackers: Sequence[str] = (),
    **numbers: int,
) -> str:  # fmt: skip
    """Write the command that repeats a study. numbers: options such as workers, which are left out if they are 1."""
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
    for tracker in trackers:
        words += ["--track", tracker]
    return shlex.join(words)
