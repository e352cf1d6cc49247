"""The compiled inner loops of pairs.cpp: built once with the machine's own C++ compiler, kept in the
user's cache, called through ctypes. Without a compiler attnlab still works, slower, and says so once."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
import shlex
import subprocess
import tempfile
import threading
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from attnlab.errors import AttnlabWarning, KernelError
from attnlab.machine import cache_folder, find_compiler, instruction_set

from ..compat import mark_constant

# -ffast-math goes to the compiler but not to the linker: there it would switch denormals off in the whole process.
FLAGS = ("-std=c++17", "-O3", "-ffast-math", "-fPIC")
WIDE = ("-mprefer-vector-width=512",)
TUNED = (("-march=native", *WIDE), ("-march=native",), ("-mcpu=native",), ())
"""What tunes the loops to this processor; the first set the compiler accepts is taken."""


SOURCE = Path(__file__).with_name("pairs.cpp")

KINDS = {
    "additive": 0, "additive_safe": 1, "manhattan": 2, "euclidean": 3, "minkowski": 4, "chebyshev": 5,
    "additive_wide": 6,
}  # fmt: skip
"""The scores of pairs.cpp."""


@dataclass(frozen=True)
class Compiler:
    """Whether there is a C++ compiler that builds the loops, which one, and if not, why not."""

    available: bool
    path: str | None
    reason: str


class TileStruct(ctypes.Structure):
    """The Tile of pairs.cpp."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("G", "R", "K", "C", "first", "stride_a", "stride_b")),
        *((name, ctypes.c_void_p) for name in ("a", "b", "w", "s", "ds", "da", "db", "dw")),
        ("fill", ctypes.c_double),
        ("scale", ctypes.c_double),
    )


def run(command: list[str]) -> str | None:
    """Run a command; return None if it did well, else what it said."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else (done.stderr.strip() or f"exit status {done.returncode}")


def _build(compiler: list[str], target: Path) -> str | None:
    """Compile the loops into `target`; return None if that worked, else the reason it did not."""
    with tempfile.TemporaryDirectory() as folder:
        unit, library = Path(folder) / "loops.o", Path(folder) / "loops.so"
        said: str | None = ""
        for tuned in TUNED:
            said = run([*compiler, *FLAGS, *tuned, "-c", str(SOURCE), "-o", str(unit)])
            if said is None:
                break
        said = said or run([*compiler, "-shared", str(unit), "-o", str(library), "-pthread"])
        if said is not None:
            lines = said.splitlines()
            first = next((line for line in lines if "error" in line), lines[0])
            return f"{shlex.join(compiler)} could not build the loops: {first}"
        try:
            ctypes.CDLL(str(library))
        except OSError as error:
            return f"{shlex.join(compiler)} built loops that cannot be loaded: {error}"
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            handle, aside = tempfile.mkstemp(dir=target.parent)
            with os.fdopen(handle, "wb") as file:
                file.write(library.read_bytes())
                file.flush()
                os.fsync(file.fileno())
            Path(aside).replace(target)
        except OSError as error:
            return f"the compiled loops cannot be kept in {target.parent}: {error.strerror}; set ATTNLAB_CACHE"
    return None


BUILDING = threading.Lock()


def loaded() -> tuple[ctypes.CDLL | None, Compiler]:
    """Build the loops if they are not in the cache, and load them; once, whichever thread comes first."""
    with BUILDING:
        return load()


@functools.cache
def load() -> tuple[ctypes.CDLL | None, Compiler]:
    """Build the loops if they are not in the cache, and load them."""
    path = find_compiler()
    if path is None:
        named = os.environ.get("CXX")
        looked = (
            f"$CXX is '{named}', which is not there" if named else "looked for g++, clang++, c++; $CXX names another"
        )
        return None, Compiler(False, None, f"no C++ compiler found ({looked})")
    how = [*path, *FLAGS, str(TUNED), instruction_set(), platform.machine()]
    identity = "\n".join([SOURCE.read_text(encoding="utf-8"), *how])
    target = cache_folder() / f"{SOURCE.stem}-{hashlib.sha256(identity.encode()).hexdigest()[:16]}.so"
    if not target.exists():
        reason = _build(path, target)
        if reason is not None:
            return None, Compiler(False, shlex.join(path), reason)
    try:
        return ctypes.CDLL(str(target)), Compiler(True, shlex.join(path), f"compiled loops in {target}")
    except OSError as error:
        reason = f"{target} cannot be loaded ({error}); delete it, and it is built anew"
        return None, Compiler(False, shlex.join(path), reason)


def compiler() -> Compiler:
    """Tell whether the compiled loops can be had here, building them on the first call."""
    return loaded()[1]


@mark_constant  # torch.compile cannot trace the search for a compiler
def missing() -> str | None:
    """Return why the compiled loops cannot be had, or None."""
    state = compiler()
    return None if state.available else state.reason


@functools.cache
def warn_missing() -> None:
    """Say, once, that the compiled loops are missing and what that costs."""
    warnings.warn(
        f"attnlab: {compiler().reason}; additive and distance scores are computed by torch instead, "
        "more slowly and with more memory ('attnlab doctor' tells more)",
        AttnlabWarning,
        stacklevel=2,
    )


def normalise(loop: int, s: Tensor, first: int) -> None:
    """Turn a tile of finite scores [g r k] into weights in place; row r may see the keys up to first + r.

    loop: the number of the loop of pairs.cpp.
    """
    g, r, k = s.shape
    call("normalise", loop, {"s": s}, {"G": g, "R": r, "K": k, "first": first})


def call(name: str, kind: int, tensors: dict[str, Tensor], sizes: Mapping[str, float]) -> None:
    """Run one tile through `forward` or `backward`. The tensors are of one dtype, fp32 or fp64."""
    library, state = loaded()
    if library is None:
        raise KernelError(f"the compiled loops are not available: {state.reason}")
    pointers = {key: tensor.data_ptr() for key, tensor in tensors.items()}
    suffix = {torch.float32: "f32", torch.float64: "f64"}[next(iter(tensors.values())).dtype]
    function = getattr(library, f"{name}_{suffix}")
    tile = TileStruct(**sizes, **pointers)
    status = function(ctypes.c_int64(kind), ctypes.c_int64(torch.get_num_threads()), ctypes.byref(tile))
    assert status == 0, f"{name} does not know {kind}"
