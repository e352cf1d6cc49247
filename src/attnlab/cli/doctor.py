"""`attnlab doctor`: what this machine has, and what follows from something that is missing."""

import os
import platform
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import attnlab
from attnlab.cli.options import AsJson
from attnlab.cli.tables import print_entries, print_json

BF16_INSTRUCTIONS = ("avx512_bf16", "amx_bf16", "bf16")
"""Instructions that multiply bf16, by torch's names for x86 and ARM."""
COMPILED = ("additive", "distance")
"""The kernels that need the compiled loops."""


@dataclass(frozen=True)
class Observation:
    """A property of this machine, its value, and what follows from it."""

    subject: str
    found: str
    consequence: str = ""


def examine(as_json: AsJson = False) -> int:
    """Show what this machine has: versions, compiler, compiled loops, bf16, threads, disk, kernels."""
    observations = observe()
    if as_json:
        print_json([asdict(observation) for observation in observations])
    else:
        rows = [(seen.subject, seen.found, seen.consequence) for seen in observations]
        print_entries(("what", "found", "what follows"), rows)
    return 0


def observe() -> list[Observation]:
    """Return everything the doctor reports, in the order it is shown."""
    import torch

    from attnlab import machine

    caches = ", ".join(f"{level} {size}" for level, size in machine.cache_sizes().items())
    return [
        Observation("python", platform.python_version()),
        Observation("torch", str(torch.__version__)),
        observe_compiler(machine.find_compiler()),
        observe_loops(),
        Observation(
            "processor",
            f"{machine.processor_name()} ({machine.vector_extension()})",
            f"caches: {caches}" if caches else "",
        ),
        observe_bf16(torch.cpu.get_capabilities(), machine.bf16_fault(), *machine.decide_bf16()),
        observe_threads(torch.get_num_threads()),
        Observation("disk free here", f"{shutil.disk_usage(os.getcwd()).free / 1e9:.1f} GB"),
        observe_kernels(),
    ]


def observe_compiler(command: list[str] | None) -> Observation:
    """Report the C++ compiler, which is needed only if no loops were prebuilt for this processor."""
    if command is None:
        return Observation("C++ compiler", "none", "needed only if 'compiled loops' says so")
    return Observation("C++ compiler", shlex.join(command))


def observe_loops() -> Observation:
    """Report which compiled loops are used, and why, or what their absence costs."""
    loops = attnlab.kernels.describe_loops()
    if loops.available:
        return Observation("compiled loops", loops.name, loops.reason)
    cost = "additive and distance scores run uncompiled: same results, many times slower"
    return Observation("compiled loops", "none", f"{loops.reason}; {cost}")


def observe_bf16(capabilities: Mapping[str, Any], fault: str, pays: bool, reason: str) -> Observation:
    """Report whether training computes matrix products in bf16 or fp32 on this processor, and why."""
    present = [name for name in BF16_INSTRUCTIONS if capabilities.get(name)]
    chosen = f"training uses {'bf16' if pays else 'fp32'}, because {reason}"
    return Observation("bf16", ", ".join(present) or "no instructions", f"{fault}; {chosen}" if fault else chosen)


def observe_threads(num_threads: int) -> Observation:
    """Compare the number of threads that torch uses with the number of processors."""
    num_processors = os.cpu_count() or 1
    found = f"{num_threads} of {num_processors} processors"
    if num_threads < num_processors:
        return Observation("threads", found, "torch.set_num_threads or OMP_NUM_THREADS raises it")
    return Observation("threads", found)


def observe_kernels() -> Observation:
    """Name the kernels that `attend` can choose from, and those that cannot run here."""
    hint = "for that of a mechanism: attnlab explain LINE"
    unusable = () if attnlab.kernels.describe_loops().available else COMPILED
    usable = ", ".join(name for name in attnlab.kernels.KERNELS if name not in unusable)
    return Observation("kernels", usable, f"{' and '.join(unusable)} cannot run here; {hint}" if unusable else hint)
