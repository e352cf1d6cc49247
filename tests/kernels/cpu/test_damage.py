"""Damaged caches of compiled loops: 200 of them give 200 right results, one sentence each, and no process ends.

`python -m tests.kernels.cpu.test_damage FOLDER` is the process that would end; it loads FOLDER/good.so in place of
compiling.
"""

import os
import random
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

import pytest
import torch

from attnlab import attend
from attnlab.checksums import seal
from attnlab.errors import AttnlabWarning
from attnlab.kernels.cpu import library, native, variants
from attnlab.machine import find_compiler

CASES = (
    *["truncated"] * 60, *["flipped bits"] * 60, *["empty"] * 20, *["another user's file"] * 15,
    *["writable file"] * 15, *["writable folder"] * 15, *["unwritable folder"] * 15,
)  # fmt: skip
SENTENCES = {
    "truncated": "is damaged (its checksum differs); the compiled loops were built again",
    "flipped bits": "is damaged (its checksum differs); the compiled loops were built again",
    "empty": "is empty; the compiled loops were built again",
    "another user's file": "belongs to another user (id ",
    "writable file": "can be written by other users; run 'chmod go-w ",
    "writable folder": "can be written by other users; run 'chmod go-w ",
    "unwritable folder": "cannot be stored: every process compiles them again, because ",
}
LASTING = ("writable folder", "unwritable folder")
"""What a rebuild cannot repair: every process says it."""
NOBODY = 65534


@pytest.mark.skipif(find_compiler() is None or os.name != "posix", reason="needs a C++ compiler")
def test_two_hundred_damaged_caches() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)  # as another user, the process must reach what is in it
        body, reason = variants.compile_loops(find_compiler() or [], [("-O0",)])
        assert body, reason
        (folder / "good.so").write_bytes(body)
        script = folder / "compiler"
        lines = ("#!/bin/sh", "for last; do :; done", f'echo "$last" >> {name}/log', f'cp {name}/good.so "$last"')
        script.write_text("\n".join(lines))
        script.chmod(0o755)
        environment = {**os.environ, "CXX": str(script), "ATTNLAB_LOOPS": "native", "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "tests.kernels.cpu.test_damage", name]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert Counter(done.stdout.splitlines()) == Counter(f"{case}: right, said once" for case in CASES)


def damage(case: str, file: Path, content: bytes, draw: random.Random) -> None:
    """Put a damaged copy of a good cache file in place."""
    if case == "truncated":
        content = content[: draw.randrange(1, len(content))]
    elif case == "flipped bits":
        flipped = bytearray(content)
        for _ in range(draw.randrange(1, 9)):
            flipped[draw.randrange(len(flipped))] ^= 1 << draw.randrange(8)
        content = bytes(flipped) if bytes(flipped) != content else content[:-1]
    elif case in ("empty", "unwritable folder"):
        content = b""
    file.write_bytes(content)
    if case == "another user's file" and os.geteuid() == 0:
        os.chown(file, NOBODY, -1)
    if case == "writable file":
        file.chmod(0o666)
    if case == "writable folder":
        file.parent.chmod(0o777)
    if case == "unwritable folder":
        file.parent.chmod(0o555)


def compute(case: str, q: torch.Tensor, right: torch.Tensor) -> list[str]:
    """Load the loops anew and check what they compute; return what was said."""
    native._load_loops.cache_clear()
    is_root = os.geteuid() == 0
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        if case == "unwritable folder" and is_root:
            os.seteuid(NOBODY)  # root can write everywhere
        try:
            if case == "another user's file" and not is_root:
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(os, "geteuid", lambda: os.getuid() + 1)
                    assert native.describe_loops().available
            out = attend(q, q, q, "manhattan | softmax", causal=True, kernel="distance")
        finally:
            if is_root:
                os.seteuid(0)
    torch.testing.assert_close(out, right)
    assert all(warning.category is AttnlabWarning for warning in said)
    return [str(warning.message) for warning in said]


def main(folder: Path) -> None:
    """Load every damaged cache twice in this process."""
    draw, log = random.Random(0), folder / "log"
    q = torch.randn(1, 2, 9, 16, generator=torch.Generator().manual_seed(0))
    right = attend(q, q, q, "manhattan | softmax", causal=True, kernel="reference")
    body = (folder / "good.so").read_bytes()
    os.environ["ATTNLAB_CACHE"] = str(folder / "first")
    assert compute("good", q, right) == []  # compiles and stores
    (first,) = (folder / "first" / "loops").iterdir()
    assert (first.stat().st_mode & 0o777, first.read_bytes()) == (0o644, seal(body))
    log.write_text("")
    assert compute("good", q, right) == []
    assert log.read_text() == ""  # no compiler was started
    for number, case in enumerate(CASES):
        os.environ["ATTNLAB_CACHE"] = str(folder / str(number))
        file = folder / str(number) / "loops" / first.name
        library.store(file, body)
        log.write_text("")
        damage(case, file, seal(body), draw)
        said = compute(case, q, right)
        assert len(said) == 1, (case, said)
        assert SENTENCES[case] in said[0], (case, said)
        built_again = [line for line in log.read_text().splitlines() if line.endswith("loops.so")]
        assert len(built_again) == 1
        if case not in LASTING and os.geteuid() == 0:
            assert compute(case, q, right) == []
            assert library.read(file) == body
        print(f"{case}: right, said once")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
