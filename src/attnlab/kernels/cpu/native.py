"""The compiled inner loops of pairs.cpp: built once with the machine's C++ compiler, stored in the user's cache,
called through ctypes. Without a compiler attnlab works more slowly and warns once."""

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
TUNED = (("-march=native", "-mprefer-vector-width=512"), ("-march=native",), ("-mcpu=native",), ())
"""Options that tune the loops to this processor; the first set that the compiler accepts is used."""

SOURCE = Path(__file__).with_name("pairs.cpp")

KINDS = {
    "additive": 0, "additive_safe": 1, "manhattan": 2, "euclidean": 3, "minkowski": 4, "chebyshev": 5,
    "additive_wide": 6,
}  # fmt: skip
"""The scores of pairs.cpp."""

BUILDING = threading.Lock()


@dataclass(frozen=True)
class Compiler:
    """Whether a C++ compiler builds the loops, which one, and the reason if not."""

    available: bool
    path: str | None
    reason: str


class TileStruct(ctypes.Structure):
    """The Tile of pairs.cpp."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("G", "R", "K", "C", "first", "stride_a", "stride_b")),
        *((name, ctypes.c_void_p) for name in ("a", "b", "w", "s", "ds", "da", "db", "dw")),
        *((name, ctypes.c_double) for name in ("fill", "scale")),
    )


def _run(command: list[str]) -> str | None:
    """Run a command; return None if it succeeded, else its error message."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else (done.stderr.strip() or f"exit status {done.returncode}")


def _build(compiler: list[str], target: Path) -> str | None:
    """Compile the loops into `target`; return None if it succeeded, else the reason."""
    with tempfile.TemporaryDirectory() as folder:
        unit, library = Path(folder) / "loops.o", Path(folder) / "loops.so"
        message: str | None = ""
        for tuned in TUNED:
            message = _run([*compiler, *FLAGS, *tuned, "-c", str(SOURCE), "-o", str(unit)])
            if message is None:
                break
        message = message or _run([*compiler, "-shared", str(unit), "-o", str(library), "-pthread"])
        if message is not None:
            lines = message.splitlines()
            first = next((line for line in lines if "error" in line), lines[0])
            return f"{shlex.join(compiler)} could not build the loops: {first}"
        try:
            ctypes.CDLL(str(library))
        except OSError as error:
            return f"{shlex.join(compiler)} built loops that cannot be loaded: {error}"
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=target.parent)
            with os.fdopen(handle, "wb") as file:
                file.write(library.read_bytes())
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).replace(target)
        except OSError as error:
            return f"the compiled loops cannot be stored in {target.parent}: {error.strerror}; set ATTNLAB_CACHE"
    return None


def load_loops() -> tuple[ctypes.CDLL | None, Compiler]:
    """Build the loops if they are not in the cache, and load them; once per process, even with several threads."""
    with BUILDING:
        return _load_loops()


@functools.cache
def _load_loops() -> tuple[ctypes.CDLL | None, Compiler]:
    path = find_compiler()
    if path is None:
        named = os.environ.get("CXX")
        tried = f"$CXX is '{named}', which is not found" if named else "tried g++, clang++, c++; set $CXX for another"
        return None, Compiler(False, None, f"no C++ compiler found ({tried})")
    identity = [SOURCE.read_text(encoding="utf-8"), *path, *FLAGS, str(TUNED), instruction_set(), platform.machine()]
    digest = hashlib.sha256("\n".join(identity).encode()).hexdigest()[:16]
    target = cache_folder() / f"{SOURCE.stem}-{digest}.so"
    if not target.exists():
        reason = _build(path, target)
        if reason is not None:
            return None, Compiler(False, shlex.join(path), reason)
    try:
        return ctypes.CDLL(str(target)), Compiler(True, shlex.join(path), f"compiled loops in {target}")
    except OSError as error:
        reason = f"{target} cannot be loaded ({error}); delete it, and it is built again"
        return None, Compiler(False, shlex.join(path), reason)


def compiler() -> Compiler:
    """Return whether the compiled loops are available here, building them on the first call."""
    return load_loops()[1]


@mark_constant  # torch.compile cannot trace the search for a compiler
def explain_missing() -> str | None:
    """Return why the compiled loops are not available, or None."""
    state = compiler()
    return None if state.available else state.reason


def refusal(device: str) -> str | None:
    """Return why the compiled loops cannot be used on a device, or None."""
    return explain_missing() if device == "cpu" else f"its loops are compiled for the CPU, not for {device}"


@functools.cache
def warn_missing() -> None:
    """Warn, once, that the compiled loops are missing and that this costs time and memory."""
    warnings.warn(
        f"attnlab: {compiler().reason}; additive and distance scores are computed by torch instead, "
        "more slowly and with more memory (see 'attnlab doctor')",
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
    """Run one tile through a function of pairs.cpp. The tensors have one dtype, fp32 or fp64."""
    library, state = load_loops()
    if library is None:
        raise KernelError(f"the compiled loops are not available: {state.reason}")
    pointers = {key: tensor.data_ptr() for key, tensor in tensors.items()}
    suffix = {torch.float32: "f32", torch.float64: "f64"}[next(iter(tensors.values())).dtype]
    function = getattr(library, f"{name}_{suffix}")
    tile = TileStruct(**sizes, **pointers)
    status = function(ctypes.c_int64(kind), ctypes.c_int64(torch.get_num_threads()), ctypes.byref(tile))
    assert status == 0, f"{name} does not know {kind}"
