"""Every recipe with its smallest budget, from the shell as a user would: `make smoke`. Says how long each one took."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from attnlab.studies.file.recipes import list_recipes

SHOWN = 15
"""Lines of what was said that are shown of a recipe that failed."""


def main(names: list[str]) -> int:
    """Run recipes; return how many did not come to a conclusion."""
    num_failed = 0
    for name in names or list(list_recipes()):
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / name
            command = ["run", name, "--budget", "smoke", "--workers", "2", "--out", str(out)]
            start = time.perf_counter()
            run = subprocess.run([sys.executable, "-m", "attnlab", *command], capture_output=True, text=True)
            is_whole = run.returncode == 0 and (out / "report.html").exists()
            print(f"{name}: {'passed' if is_whole else 'FAILED'}, {time.perf_counter() - start:.0f} s", flush=True)
            if not is_whole:
                num_failed += 1
                print("\n".join((run.stdout + run.stderr).splitlines()[-SHOWN:]), flush=True)
    return num_failed


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1:]) else 0)
