"""The instruction sets that the loops of pairs.cpp are compiled for: this processor's, or those that a wheel carries.

This file imports the standard library only, because the build of a wheel (hatch_build.py) runs it by itself.
"""

import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).with_name("pairs.cpp")

# -ffast-math goes to the compiler but not to the linker: there it would switch denormals off in the whole process.
FLAGS = ("-std=c++17", "-O3", "-ffast-math", "-fPIC")
LINK = ("-shared", "-pthread")
WIDE = ("-mprefer-vector-width=512",)
TUNED = (("-march=native", *WIDE), ("-march=native",), ("-mcpu=native",), ())
"""Options that tune the loops to this processor; the first set that the compiler accepts is used."""


class Variant(NamedTuple):
    """An instruction set that a wheel carries loops for.

    machine: the architecture, as `platform.machine()` names it.
    features: what a processor must have, as /proc/cpuinfo names it.
    """

    name: str
    machine: str
    options: tuple[str, ...]
    features: frozenset[str]

    @property
    def file_name(self) -> str:
        """The name of the library in a wheel."""
        return f"{SOURCE.stem}-{self.name}.so"


AVX2 = frozenset({"avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"})
AVX512 = frozenset({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"})

VARIANTS = (
    Variant("x86-64-v4", "x86_64", ("-march=x86-64-v4", *WIDE), AVX2 | AVX512),
    Variant("x86-64-v3", "x86_64", ("-march=x86-64-v3", *WIDE), AVX2),
    Variant("aarch64", "aarch64", (), frozenset({"asimd"})),
)
"""All of them for Linux; of several that a processor can run, the fastest comes first."""


def list_variants(instruction_set: str, machine: str | None = None) -> list[Variant]:
    """Return the variants that a processor can run, the fastest first; the default machine is this one."""
    machine, features = machine or platform.machine(), set(instruction_set.split())
    if sys.platform != "linux":
        return []
    return [one for one in VARIANTS if one.machine == machine and one.features <= features]


def find_variant_compiler(variant: Variant) -> list[str] | None:
    """Return the GNU compiler for a variant: the one for its architecture, or on that architecture `g++`."""
    is_native = sys.platform == "linux" and platform.machine() == variant.machine
    names = (f"{variant.machine}-linux-gnu-g++", *(("g++",) if is_native else ()))
    return next(([path] for name in names if (path := shutil.which(name))), None)


def build_variant(variant: Variant) -> tuple[bytes, str]:
    """Compile the loops for a variant; return the library, or why there is none."""
    compiler = find_variant_compiler(variant)
    if compiler is None:
        return b"", f"{variant.machine}-linux-gnu-g++ is not installed"
    return compile_loops(compiler, [variant.options], strip=True)


def compile_loops(compiler: Sequence[str], choices: Iterable[Sequence[str]], strip: bool = False) -> tuple[bytes, str]:
    """Compile the loops with the first options that the compiler accepts; return the library, or why there is none."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            unit, library = Path(folder) / "loops.o", Path(folder) / "loops.so"
            message: str | None = ""
            for options in choices:
                message = _run([*compiler, *FLAGS, *options, "-c", str(SOURCE), "-o", str(unit)])
                if message is None:
                    break
            if message is None:
                message = _run([*compiler, str(unit), *LINK, *(("-s",) if strip else ()), "-o", str(library)])
            if message is None:
                return library.read_bytes(), ""
    except OSError as error:
        message = str(error)
    lines = message.splitlines()
    first = next((line for line in lines if "error" in line), lines[0] if lines else "no message")
    return b"", f"{shlex.join(compiler)} could not build the loops: {first}"


def _run(command: list[str]) -> str | None:
    """Run a command; return None if it succeeded, else its error message."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else (done.stderr.strip() or f"exit status {done.returncode}")
