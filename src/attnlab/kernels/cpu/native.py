"""The compiled inner loops of pairs.cpp, called through ctypes: prebuilt ones that came with the installation if this
processor can run them, else compiled once for this processor and stored in the user's cache. Without either attnlab
works more slowly and warns once. Nothing is looked for before a kernel needs the loops."""

import ctypes
import functools
import hashlib
import os
import platform
import shlex
import threading
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from attnlab.checksums import unseal
from attnlab.errors import AttnlabWarning, KernelError
from attnlab.machine import cache_folder, find_compiler, instruction_set

from ..compat import mark_constant
from . import library, variants

PREBUILT = Path(__file__).with_name("prebuilt")
"""The folder of the libraries that a wheel carries; a checkout has none."""

KINDS = {
    "additive": 0, "additive_safe": 1, "manhattan": 2, "euclidean": 3, "minkowski": 4, "chebyshev": 5,
    "additive_wide": 6,
}  # fmt: skip
"""The scores of pairs.cpp."""

BUILDING = threading.Lock()


@dataclass(frozen=True)
class Loops:
    """Which compiled loops are used here, if any, and why."""

    available: bool
    name: str
    reason: str


class TileStruct(ctypes.Structure):
    """The Tile of pairs.cpp."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("G", "R", "K", "C", "first", "stride_a", "stride_b")),
        *((name, ctypes.c_void_p) for name in ("a", "b", "w", "s", "ds", "da", "db", "dw")),
        *((name, ctypes.c_double) for name in ("fill", "scale")),
    )


def load_loops() -> tuple[ctypes.CDLL | None, Loops]:
    """Find or build the loops and load them; once per process, even with several threads."""
    with BUILDING:
        return _load_loops()


@functools.cache
def _load_loops() -> tuple[ctypes.CDLL | None, Loops]:
    wanted = os.environ.get("ATTNLAB_LOOPS", "")
    runnable = variants.list_variants(instruction_set())
    choices = ["native", *(one.name for one in runnable)]
    if wanted not in ("", *choices):
        names = " or ".join(f"'{choice}'" for choice in choices)
        raise KernelError(f"ATTNLAB_LOOPS is '{wanted}'; on this processor set it to {names}, or leave it unset")
    if os.name != "posix":
        return None, Loops(False, "none", "the loops need Linux or macOS")
    problems: list[str] = []
    variant = next((one for one in runnable if wanted in ("", one.name)), None)
    if variant is not None and (file := PREBUILT / variant.file_name).exists():
        try:
            prebuilt = _load(unseal(file.read_bytes(), file))
            return prebuilt, Loops(True, f"prebuilt for {variant.name}", "this processor has its instructions")
        except ValueError as error:
            problems.append(f"{error}; reinstall attnlab")
        except OSError as error:  # such as a C library that is too old
            problems.append(f"the loops prebuilt for {variant.name} are not used, because {_describe(error)}")
    is_asked = variant is not None and variant.name == wanted
    loaded, loops = _load_or_compile(problems, variant if is_asked else None)
    if loaded is not None and problems:
        warnings.warn(f"attnlab: {'; '.join(problems)}", AttnlabWarning, stacklevel=2)
    elif problems:
        loops = Loops(False, loops.name, "; ".join([*problems, loops.reason]))
    return loaded, loops


def _load_or_compile(problems: list[str], variant: variants.Variant | None) -> tuple[ctypes.CDLL | None, Loops]:
    """Load the loops of the cache, or build and store them; add what is wrong with the cache to `problems`.

    variant: the instruction set that they are compiled for; None is this processor's own.
    """
    name = "compiled for this processor" if variant is None else f"compiled for {variant.name}"
    choices = variants.TUNED if variant is None else (variant.options,)
    # Not the compiler's path: what is stored serves without any compiler.
    identity = [
        variants.SOURCE.read_text(encoding="utf-8"), os.environ.get("CXX", ""), str(variants.FLAGS + variants.LINK),
        str(choices), instruction_set(), platform.machine(),
    ]  # fmt: skip
    digest = hashlib.sha256("\n".join(identity).encode()).hexdigest()[:16]
    file = cache_folder() / "loops" / f"{variants.SOURCE.stem}-{digest}.so"
    problem = ""
    try:
        return _load(library.read(file)), Loops(True, name, f"stored in {file}")
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        problem = _describe(error)
    compiler, body = find_compiler(), b""
    if compiler is None:
        named = os.environ.get("CXX")
        tried = f"$CXX is '{named}', which is not found" if named else "tried g++, clang++, c++; set $CXX for another"
        reason = f"no C++ compiler found ({tried})"
    else:
        body, reason = variants.compile_loops(compiler, choices)
    if not body:
        return None, Loops(False, "none", f"{problem}; {reason}" if problem else reason)
    try:
        loaded = _load(body)
    except OSError as error:
        return None, Loops(False, "none", _describe(error))
    assert compiler is not None
    name = f"{name} with {shlex.join(compiler)}"
    try:
        library.store(file, body)
    except OSError as error:
        why = f"{file.parent}: {error.strerror}" if error.strerror else str(error)
        reason = f"every process compiles them again, because {why}"
        problems += [problem] if problem not in ("", why) else []
        problems.append(f"the compiled loops cannot be stored: {reason}; or set ATTNLAB_CACHE to another folder")
        return loaded, Loops(True, name, reason)
    if problem:
        problems.append(f"{problem}; the compiled loops were built again")
    return loaded, Loops(True, name, f"now stored in {file}")


def _load(body: bytes) -> ctypes.CDLL:
    # Folders are found only if they are needed: a user may have no home.
    return library.load(body, (find_folder() for find_folder in (lambda: None, cache_folder)))


def _describe(error: OSError | ValueError) -> str:
    """Return an error's own sentence, without the number that the system's errors begin with."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


def describe_loops() -> Loops:
    """Return which compiled loops are used here and why, loading them on the first call."""
    return load_loops()[1]


@mark_constant  # torch.compile cannot trace the search for a compiler
def explain_missing() -> str | None:
    """Return why the compiled loops are not available, or None."""
    loops = describe_loops()
    return None if loops.available else loops.reason


def refusal(device: str) -> str | None:
    """Return why the compiled loops cannot be used on a device, or None."""
    return explain_missing() if device == "cpu" else f"its loops are compiled for the CPU, not for {device}"


@functools.cache
def warn_missing() -> None:
    """Warn, once, that the compiled loops are missing and that this costs time and memory."""
    warnings.warn(
        f"attnlab: {describe_loops().reason}; additive and distance scores, softmax1, sparsemax and entmax15 weights, "
        "and the loss of large vocabularies are computed by torch instead, more slowly and with more memory (see "
        "'attnlab doctor')",
        AttnlabWarning,
        stacklevel=2,
    )


def normalise(loop: int, s: Tensor, first: int) -> None:
    """Turn a tile of finite scores [g r k] into weights in place; row r may see the keys up to first + r.

    loop: the number of the loop of pairs.cpp.
    """
    g, r, k = s.shape
    call("normalise", loop, {"s": s}, {"G": g, "R": r, "K": k, "first": first})


def exponentiate(logits: Tensor, shift: Tensor, total: Tensor) -> None:
    """Turn logits [r k] into exp(logits − shift), their row's largest so far, in place; update its shift and total [r].

    The total is the sum of a row's exponentials so far, relative to its shift: NaN if a logit is NaN or +∞.
    """
    num_rows, width = logits.shape
    call("exponentiate", 0, {"s": logits, "da": shift, "db": total}, {"G": 1, "R": num_rows, "K": width})


def call(name: str, kind: int, tensors: dict[str, Tensor], sizes: Mapping[str, float]) -> None:
    """Run one tile through a function of pairs.cpp. The tensors have one dtype, fp32 or fp64."""
    loaded, loops = load_loops()
    if loaded is None:
        raise KernelError(f"the compiled loops are not available: {loops.reason}")
    pointers = {key: tensor.data_ptr() for key, tensor in tensors.items()}
    suffix = {torch.float32: "f32", torch.float64: "f64"}[next(iter(tensors.values())).dtype]
    function = getattr(loaded, f"{name}_{suffix}")
    tile = TileStruct(**sizes, **pointers)
    status = function(ctypes.c_int64(kind), ctypes.c_int64(torch.get_num_threads()), ctypes.byref(tile))
    assert status == 0, f"{name} does not know {kind}"
