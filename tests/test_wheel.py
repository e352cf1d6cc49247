"""The wheel, built without the network: it carries loops for three instruction sets, which work without a compiler."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from attnlab.kernels.cpu import variants
from attnlab.machine import instruction_set

ROOT = Path(__file__).parents[1]
LIBRARIES = {"libstdc++.so.6", "libm.so.6", "libmvec.so.1", "libgcc_s.so.1", "libc.so.6", "ld-linux-aarch64.so.1"}
"""What prebuilt loops may need: torch needs the same, and libmvec is part of glibc."""
NEWEST = {"GLIBC": (2, 29), "GLIBCXX": (3, 4, 22), "CXXABI": (1, 3, 9)}
"""The newest versions that prebuilt loops may need: those of 2019 and 2016."""

USE = """
import torch, attnlab
from attnlab.kernels import describe_loops
torch.manual_seed(0)
q, k, v = torch.randn(3, 2, 3, 37, 16, requires_grad=True).unbind()
for line in ("additive | softmax", "manhattan | softmax1", "minkowski(p=3) | softmax", "dot | entmax15"):
    for causal in (False, True):
        results = []
        for kernel in ("auto", "reference"):
            out = attnlab.attend(q, k, v, line, causal=causal, kernel=kernel)
            results.append((out, *torch.autograd.grad(out.square().sum(), (q, k, v))))
        for fast, right in zip(*results):
            torch.testing.assert_close(fast, right, atol=1e-4, rtol=1e-4)
print(attnlab.__file__)
print(describe_loops().name)
"""


def build(folder: Path, **environment: str) -> tuple[Path, str]:
    """Build a wheel from a checkout; return its unpacked folder, and what the build said."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.glob("*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site", done.stdout + done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    return build(tmp_path_factory.mktemp("wheel"))


def prebuilt(site: Path) -> dict[str, Path]:
    return {file.name: file for file in (site / "attnlab/kernels/cpu/prebuilt").glob("*")}


def test_every_variant_is_in_the_wheel_or_the_build_says_why_not(wheel: tuple[Path, str]) -> None:
    site, said = wheel
    for variant in variants.VARIANTS:
        if variants.find_variant_compiler(variant):
            assert variant.file_name in prebuilt(site)
        else:
            assert f"this wheel has no loops for {variant.name}: {variant.machine}-linux-gnu-g++ is not" in said


def test_prebuilt_loops_work_without_a_compiler(wheel: tuple[Path, str], tmp_path: Path) -> None:
    site, _ = wheel
    variant = next(iter(variants.list_variants(instruction_set())), None)
    if variant is None or variant.file_name not in prebuilt(site):
        pytest.skip("no loops are prebuilt for this processor")
    environment = {
        "PATH": "", "PYTHONPATH": str(site), "ATTNLAB_CACHE": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1",
        "PYTHONWARNINGS": "error::UserWarning",
    }  # fmt: skip
    command = [sys.executable, "-c", USE]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [str(site / "attnlab/__init__.py"), f"prebuilt for {variant.name}"]
    assert not (tmp_path / "cache").exists()


@pytest.mark.skipif(shutil.which("readelf") is None, reason="needs readelf")
def test_prebuilt_loops_need_no_new_system_libraries(wheel: tuple[Path, str]) -> None:
    for file in prebuilt(wheel[0]).values():
        shown = subprocess.run(["readelf", "-W", "-d", "-V", file], capture_output=True, text=True, check=True).stdout
        assert set(re.findall(r"Shared library: \[(.*?)\]", shown)) <= LIBRARIES
        versions = re.findall(r"Name: ([A-Z]+)_([\d.]+)", shown)
        assert versions
        newer = [(name, v) for name, v in versions if name in NEWEST and tuple(map(int, v.split("."))) > NEWEST[name]]
        assert newer == []


def test_a_build_without_compilers_says_so(tmp_path: Path) -> None:
    site, said = build(tmp_path, PATH="")
    assert prebuilt(site) == {}
    assert said.count("attnlab: this wheel has no loops for ") == len(variants.VARIANTS)
    assert "aarch64-linux-gnu-g++ is not installed" in said
