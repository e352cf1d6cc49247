"""Whether the processor's tiles (Intel's AMX) can multiply bf16 in this process: by its flags, by leave of the system,
and by a product tried elsewhere first, since a virtual machine may announce instructions that fault."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import json
import platform
import subprocess
import sys
from contextlib import suppress

from . import native

NEEDED = ("amx_tile", "amx_bf16", "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_bf16")
"""What products.cpp is compiled for, as Linux names it."""

# Named one by one and not by -march=native: compilers ask the processor about tiles, and may be told there are none.
PRODUCTS = native.Loops(
    "products.cpp",
    ("-std=c++17", "-O3", "-fPIC"),
    (tuple(f"-m{name.replace('avx512_', 'avx512').replace('_', '-')}" for name in NEEDED),),
)

TRIAL = """
import ctypes, sys
loops = ctypes.CDLL(sys.argv[1])
sys.exit(3 * loops.request_tiles() or 4 * loops.try_tiles())
"""
"""Run in a process of its own, since an instruction that faults ends it."""

PATIENCE = 60.0
"""Seconds after which the trial has failed."""


@functools.cache
def has_tiles() -> tuple[bool, str]:
    """Tell whether this process can multiply by tiles, and how that is known; never raises."""
    try:
        reason = refusal()
    except Exception as error:  # a question about the machine must not end what a user does
        reason = f"asking for them failed ({type(error).__name__}: {error})"
    if reason:
        return False, f"no bf16 tiles: {reason}"
    return True, "bf16 tiles work: a product was tried and is right"


def refusal() -> str | None:
    """Return why tiles cannot be used here, or None."""
    if platform.system() != "Linux" or platform.machine() not in ("x86_64", "AMD64"):
        return f"attnlab uses those of x86-64 under Linux, and this is {platform.system()} on {platform.machine()}"
    flags = native.processor().split()
    lacking = [name for name in NEEDED if name not in flags]
    if lacking:
        return f"the processor has no {', '.join(lacking)}"
    library, compiler = native.loaded(PRODUCTS)
    if library is None:
        return compiler.reason
    return fault_of(library) or (None if library.request_tiles() == 0 else "the system does not give leave to use them")


def fault_of(library: ctypes.CDLL) -> str | None:
    """Say what a product by tiles does instead of being right, or None; tried once for each machine and library."""
    key = hashlib.sha256("\n".join([library._name, native.processor(), platform.release()]).encode()).hexdigest()[:16]
    file = native.cache_folder() / f"tiles-{key}.json"
    with suppress(OSError, ValueError, KeyError):
        kept: str | None = json.loads(file.read_text(encoding="utf-8"))["fault"]
        return kept
    fault = tried(library._name)
    with suppress(OSError):  # what cannot be kept is tried again next time
        file.write_text(json.dumps({"fault": fault}), encoding="utf-8")
    return fault


def tried(library: str) -> str | None:
    """Try a product in a process of its own; say what went wrong, or None."""
    command = [sys.executable, "-I", "-S", "-c", TRIAL, library]
    try:
        status = subprocess.run(command, capture_output=True, check=False, timeout=PATIENCE).returncode
    except subprocess.TimeoutExpired:
        return f"a product that was tried did not end within {PATIENCE:.0f} s"
    if status < 0:
        return "a product that was tried ended its process: the processor announces instructions that fault"
    return {
        0: None,
        3: "the system does not give leave to use them",
        4: "a product that was tried came out wrong",
    }.get(status, f"a product that was tried failed (exit status {status})")


def loops() -> ctypes.CDLL | None:
    """Return the compiled products where they can be used."""
    return native.loaded(PRODUCTS)[0] if has_tiles()[0] else None
