"""What this computer has: processor, instruction set, cores, caches, compiler, bf16, the cache folder, and attnlab."""

import functools
import hashlib
import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

from attnlab.errors import RequestError
from attnlab.inputs import expand_path, parse_json

BF16_TRIAL = """
import time, torch
torch.set_num_threads(1)
x = torch.ones(1, 1, 64, 64, dtype=torch.bfloat16, requires_grad=True)
torch.nn.functional.scaled_dot_product_attention(x, x, x @ x).sum().backward()
def seconds(dtype):
    a, b = torch.randn(512, 512).to(dtype), torch.randn(2048, 512).to(dtype)
    best = float("inf")
    for _ in range(8):
        start = time.perf_counter()
        torch.nn.functional.linear(a, b)
        best = min(best, time.perf_counter() - start)
    return best
print(seconds(torch.float32) / seconds(torch.bfloat16))
"""
"""Runs in a separate process, because an unsupported instruction ends its process."""

BF16_REMEDY = {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16"}
"""Keeps oneDNN from AMX, which some virtual machines announce but do not support."""

BF16_PAYS = 1.1
"""The least speedup over fp32 at which bf16 is used, since it is less precise."""

VECTOR_EXTENSIONS = {
    "amx_tile": "AMX, AVX-512", "avx512_bf16": "AVX-512 with bf16", "avx512f": "AVX-512", "avx2": "AVX2",
    "sse2": "SSE2", "sve": "SVE", "asimd": "NEON",
}  # fmt: skip
"""Features as /proc/cpuinfo names them, and the words for a reader, the widest first."""


@dataclass(frozen=True)
class Machine:
    """What determines how fast torch computes here."""

    processor: str
    vector_extension: str
    num_processors: int
    num_threads: int
    torch: str

    def __str__(self) -> str:
        threads = "1 thread" if self.num_threads == 1 else f"{self.num_threads} threads"
        return f"{self.processor} ({self.vector_extension}) × {self.num_processors}, {threads}, torch {self.torch}"


@dataclass(frozen=True)
class Bf16Trial:
    """The result of trying torch's bf16 products: the fault ("" if none), and the speed relative to fp32."""

    fault: str
    speedup: float


def describe(num_threads: int | None = None) -> Machine:
    """Describe this machine, for a measurement on `num_threads` threads (default: torch's setting)."""
    import torch

    threads = num_threads or torch.get_num_threads()
    return Machine(processor_name(), vector_extension(), os.cpu_count() or 1, threads, str(torch.__version__))


def processor_name() -> str:
    """Return the model name of the processor, or its architecture if the system does not report one."""
    name = _cpuinfo("model name")
    if platform.system() == "Darwin":
        command = ["sysctl", "-n", "machdep.cpu.brand_string"]
        name = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return " ".join(name.rpartition(":")[2].split()) or platform.processor() or platform.machine()


def instruction_set() -> str:
    """Return the system's line with the processor's instruction set extensions."""
    return _cpuinfo("flags", "Features") or platform.processor()


def vector_extension() -> str:
    """Return the widest vector instructions of the processor, or its architecture if they are not known."""
    features = set(instruction_set().split())
    return next((name for feature, name in VECTOR_EXTENSIONS.items() if feature in features), platform.machine())


def _cpuinfo(*keys: str) -> str:
    """Return the first line of /proc/cpuinfo that starts with one of the keys, or an empty string."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return next((line for line in lines if line.startswith(keys)), "")


def num_cores() -> int:
    """Return the number of cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def cache_sizes() -> dict[str, str]:
    """Return the sizes of the processor's data caches by level, as Linux reports them; empty on other systems."""
    sizes = {}
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        with suppress(OSError):
            level, kind, size = ((folder / name).read_text().strip() for name in ("level", "type", "size"))
            if kind != "Instruction":
                sizes[f"L{level}"] = size
    return sizes


@functools.cache
def cache_bytes(level: str) -> int | None:
    """Return the size of a data cache, such as "L2", in bytes; None if the system does not report it."""
    size = cache_sizes().get(level, "")
    number, factor = size[:-1], {"K": 2**10, "M": 2**20, "G": 2**30}.get(size[-1:])
    return int(number) * factor if factor and number.isdigit() else None


def cache_folder() -> Path:
    """Return the folder for cached files: $ATTNLAB_CACHE, or the platform's cache folder."""
    named = os.environ.get("ATTNLAB_CACHE")
    if named:
        return expand_path(named)
    if sys.platform == "darwin":
        return expand_path("~/Library/Caches/attnlab")
    return expand_path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "attnlab"


def find_compiler() -> list[str] | None:
    """Return the command of the C++ compiler: $CXX if it is set, else the first of the usual names that exists."""
    named = os.environ.get("CXX", "")
    try:
        words = shlex.split(named)
    except ValueError as error:
        raise RequestError(f"the environment variable CXX, {named!r}, is not a command: {error}; correct it") from error
    if words:
        return words if shutil.which(words[0]) else None
    return next(([path] for name in ("g++", "clang++", "c++") if (path := shutil.which(name))), None)


def decide_bf16() -> tuple[bool, str]:
    """Return whether matrix products on this processor should be in bf16, and the reason."""
    trial = try_bf16()
    if trial.fault:
        return False, f"torch's bf16 products {trial.fault} here"
    pays = trial.speedup > BF16_PAYS
    return pays, f"torch's bf16 products take {1 / trial.speedup:.2f} times as long as those in fp32"


@functools.cache
def bf16_fault() -> str:
    """Return what is wrong with bf16 matrix products here and what to do, or an empty string if they work."""
    fault = try_bf16().fault
    if not fault:
        return ""
    remedy = " ".join(f"{name}={value}" for name, value in BF16_REMEDY.items())
    if try_bf16(BF16_REMEDY).fault:
        return f"bf16 products {fault} here, with {remedy} too; use fp32"
    return f"bf16 products {fault} here; set {remedy}"


def try_bf16(variables: Mapping[str, str] | None = None) -> Bf16Trial:
    """Try bf16 products under these environment variables, once per machine, torch version and library settings."""
    environment = {**os.environ, **(variables or {})}
    settings = [f"{name}={value}" for name, value in sorted(environment.items()) if name.startswith(_LIBRARIES)]
    identity = "\n".join([BF16_TRIAL, processor_name(), instruction_set(), version("torch"), *settings])
    file = cache_folder() / f"bf16-{hashlib.sha256(identity.encode()).hexdigest()[:16]}.json"
    with suppress(OSError, ValueError, TypeError):
        return Bf16Trial(**parse_json(file.read_text(encoding="utf-8")))
    trial = _run_bf16_trial(environment)
    with suppress(OSError):  # a result that cannot be stored is measured again next time
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(asdict(trial)), encoding="utf-8")
    return trial


_LIBRARIES = ("ONEDNN_", "DNNL_", "MKL_")


def _run_bf16_trial(environment: Mapping[str, str]) -> Bf16Trial:
    # -P, so that a file torch.py in the working directory is not imported.
    command = [sys.executable, "-P", "-c", BF16_TRIAL]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return Bf16Trial("", float(done.stdout))
    # A signal, such as SIGILL, gives a negative status; on Windows exceptions give very large ones.
    is_killed = done.returncode < 0 or done.returncode > 255
    message = (done.stderr.splitlines() or ["no message"])[-1]
    return Bf16Trial("end the process" if is_killed else f"fail ({message})", 0.0)


def find_command() -> str:
    """Return how to call attnlab again: its path, unless it is on the search path."""
    beside, known = Path(sys.executable).with_name("attnlab"), shutil.which("attnlab")
    if not beside.exists() or (known is not None and Path(known).samefile(beside)):
        return "attnlab"
    return str(beside.relative_to(Path.cwd()) if beside.is_relative_to(Path.cwd()) else beside)
