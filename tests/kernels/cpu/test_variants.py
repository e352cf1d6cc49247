"""The loops of pairs.cpp for every instruction set: no warnings, whole registers in the hot loops, right results.

AArch64 is cross-compiled and run under an emulator if both are installed (`make cross`).
"""

import platform
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from attnlab.kernels.cpu import variants
from attnlab.machine import find_compiler, instruction_set

CHECK = Path(__file__).with_name("check_pairs.cpp")
WARNINGS = ("-Wall", "-Wextra", "-Werror")
X86 = {"x86-64": "sse2", "x86-64-v3": "avx2", "x86-64-v4": "avx512vl"}
"""Levels of x86-64, and the feature in /proc/cpuinfo that tells whether this processor has one."""
WIDEST = {"x86-64": "xmm", "x86-64-v3": "ymm", "x86-64-v4": "zmm"}
ARITHMETIC = re.compile(r"\s+v?(?:add|sub|mul|div|max|min|sqrt|fn?m(?:add|sub)\d+)([sp])s\b(.*)")

needs_x86 = pytest.mark.skipif(
    find_compiler() is None or platform.machine() != "x86_64", reason="needs a C++ compiler for x86-64"
)


def compile_loops(compiler: list[str], *options: str) -> None:
    command = [*compiler, *variants.FLAGS, *WARNINGS, "-I", str(variants.SOURCE.parent), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def split_functions(assembly: str) -> dict[str, list[str]]:
    """Return the lines of each loop over fp32 pairs, by the name of its function and kind."""
    functions: dict[str, list[str]] = {}
    name = None
    for line in assembly.splitlines():
        if label := re.match(r"(_Z\S+):", line):
            match = re.search(r"(?:forward_rows|backward_channels)IfLl\d", label[1])
            name = match and match[0]
        elif name:
            functions.setdefault(name, []).append(line)
    return functions


def find_inner_loops(lines: list[str]) -> list[list[str]]:
    """Return the loops that contain no other loop: from a label to a jump back to it."""
    labels = {line[:-1]: at for at, line in enumerate(lines) if re.fullmatch(r"\.L\d+:", line)}
    jumps = [(at, re.fullmatch(r"\s+j\w+\s+(\.L\d+)", line)) for at, line in enumerate(lines)]
    loops = [(labels[jump[1]], at) for at, jump in jumps if jump and labels.get(jump[1], at) < at]
    inner = [loop for loop in loops if not any(loop != o and loop[0] <= o[0] and o[1] <= loop[1] for o in loops)]
    return [lines[start:stop] for start, stop in inner]


def count_arithmetic(lines: list[str]) -> Counter[str]:
    """Count floating-point instructions by register: scalar, xmm, ymm, zmm."""
    matches = [match for line in lines if (match := ARITHMETIC.match(line))]
    return Counter("scalar" if match[1] == "s" else max(re.findall("[xyz]mm", match[2])) for match in matches)


@needs_x86
@pytest.mark.parametrize("level", X86)
def test_hot_loops_use_whole_registers(level: str, tmp_path: Path) -> None:
    file = tmp_path / "loops.s"
    compile_loops(find_compiler() or [], f"-march={level}", *variants.WIDE, "-S", str(variants.SOURCE), "-o", str(file))
    functions = split_functions(file.read_text(encoding="utf-8"))
    assert len(functions) == 13  # seven kinds forward, six backward; chebyshev's backward pass scatters
    for name, lines in functions.items():
        loops = [count for loop in find_inner_loops(lines) if (count := count_arithmetic(loop))[WIDEST[level]]]
        assert loops, f"{name} has no loop over whole registers"
        assert all(loop.keys() == {WIDEST[level]} for loop in loops), (name, loops)  # none is scalar or narrow


@needs_x86
@pytest.mark.parametrize("level", X86)
def test_results_of_each_level(level: str, tmp_path: Path) -> None:
    program = tmp_path / "check"
    options = (f"-march={level}", *variants.WIDE, str(CHECK), "-o", str(program), "-pthread", "-fopenmp")
    compile_loops(find_compiler() or [], *options)
    if X86[level] not in instruction_set().split():
        pytest.skip(f"compiled; this processor cannot run {level}")
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_results_on_aarch64(tmp_path: Path) -> None:
    compiler, emulator = shutil.which("aarch64-linux-gnu-g++"), shutil.which("qemu-aarch64")
    if compiler is None or emulator is None:
        pytest.skip("needs aarch64-linux-gnu-g++ and qemu-aarch64 (Debian: g++-aarch64-linux-gnu, qemu-user)")
    program = tmp_path / "check"
    compile_loops([compiler], "-static", str(CHECK), "-o", str(program), "-pthread")
    done = subprocess.run([emulator, program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "vectors of 16 bytes" in done.stdout


@pytest.mark.parametrize(
    ("machine", "lacks", "name"),
    [
        ("x86_64", set(), "x86-64-v4"),
        ("x86_64", {"avx512vl"}, "x86-64-v3"),
        ("x86_64", {"fma"}, None),
        ("aarch64", set(), "aarch64"),
        ("riscv64", set(), None),
    ],
)
def test_the_fastest_variant_that_a_processor_can_run(
    machine: str, lacks: set[str], name: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    features = " ".join((variants.AVX2 | variants.AVX512 | {"asimd", "sse2"}) - lacks)
    monkeypatch.setattr("sys.platform", "linux")
    found = variants.list_variants(f"flags : {features}", machine)
    assert (found[0].name if found else None) == name
    monkeypatch.setattr("sys.platform", "darwin")
    assert variants.list_variants(features, machine) == []
