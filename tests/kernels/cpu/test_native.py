"""Which compiled loops are used, when they are looked for, and what happens without any."""

import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from attnlab import attend, explain
from attnlab.checksums import seal, unseal
from attnlab.errors import AttnlabWarning, KernelError
from attnlab.kernels.cpu import library, native, variants
from attnlab.kernels.cpu.native import Loops
from attnlab.machine import find_compiler, instruction_set

needs_compiler = pytest.mark.skipif(find_compiler() is None, reason="needs a C++ compiler")


@pytest.fixture
def _afresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Let the loops be loaded anew, from an empty cache, without prebuilt ones."""
    monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(native, "PREBUILT", tmp_path / "prebuilt")
    native._load_loops.cache_clear()
    yield
    native._load_loops.cache_clear()


@pytest.fixture(scope="module")
def body() -> bytes:
    """The loops, compiled quickly."""
    body, reason = variants.compile_loops(find_compiler() or ["g++"], [("-O0",)])
    assert body, reason
    return body


@pytest.mark.usefixtures("_afresh")
def test_a_compiler_that_does_not_exist_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert native.describe_loops().reason == "no C++ compiler found ($CXX is 'no-such-compiler', which is not found)"
    with pytest.raises(KernelError, match="no-such-compiler"):
        native.normalise(0, torch.zeros(1, 1, 1), 0)


@pytest.mark.usefixtures("_afresh")
def test_a_compiler_that_fails_is_reported_with_its_message(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = tmp_path / "broken"
    script.write_text("#!/bin/sh\necho note >&2\necho some error here >&2\nexit 1\n", encoding="utf-8")
    script.chmod(0o755)
    monkeypatch.setenv("CXX", str(script))
    loops = native.describe_loops()
    assert not loops.available
    assert loops.reason == f"{script} could not build the loops: some error here"


@pytest.mark.usefixtures("_afresh")
def test_a_library_that_cannot_be_loaded_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variants, "compile_loops", lambda compiler, choices: (b"not a library", ""))
    monkeypatch.setattr(native, "find_compiler", lambda: ["g++"])
    assert "the compiled loops cannot be loaded (from memory: " in native.describe_loops().reason


@needs_compiler
@pytest.mark.usefixtures("_afresh")
def test_prebuilt_loops_are_preferred_unless_native_ones_are_wanted(
    monkeypatch: pytest.MonkeyPatch, body: bytes
) -> None:
    variant = next(iter(variants.list_variants(instruction_set())), None)
    if variant is None:
        pytest.skip("no loops are prebuilt for this processor")
    native.PREBUILT.mkdir()
    file = native.PREBUILT / variant.file_name
    file.write_bytes(seal(body))
    monkeypatch.setattr(native, "find_compiler", lambda: pytest.fail("a compiler was looked for"))
    expected = Loops(True, f"prebuilt for {variant.name}", "this processor has its instructions")
    assert native.describe_loops() == expected

    monkeypatch.setattr(native, "find_compiler", lambda: ["g++"])
    monkeypatch.setattr(variants, "compile_loops", lambda compiler, choices: (body, ""))
    monkeypatch.setenv("ATTNLAB_LOOPS", "native")
    native._load_loops.cache_clear()
    assert native.describe_loops().name == "compiled for this processor with g++"
    native._load_loops.cache_clear()
    assert native.describe_loops().reason.startswith("stored in ")

    monkeypatch.delenv("ATTNLAB_LOOPS")
    file.write_bytes(seal(body)[:-1])
    native._load_loops.cache_clear()
    with pytest.warns(AttnlabWarning, match=r"prebuilt.* is damaged \(its checksum differs\); reinstall attnlab"):
        assert native.describe_loops().name == "compiled for this processor"


@needs_compiler
@pytest.mark.usefixtures("_afresh")
def test_loops_are_compiled_for_a_named_instruction_set(monkeypatch: pytest.MonkeyPatch, body: bytes) -> None:
    runnable = variants.list_variants(instruction_set())
    if not runnable:
        pytest.skip("no instruction set has a name on this processor")
    asked: list[object] = []

    def compile_loops(compiler: list[str], choices: tuple[tuple[str, ...], ...]) -> tuple[bytes, str]:
        asked.append(choices)
        return body, ""

    monkeypatch.setattr(variants, "compile_loops", compile_loops)
    monkeypatch.setattr(native, "find_compiler", lambda: ["g++"])
    for variant in runnable:
        monkeypatch.setenv("ATTNLAB_LOOPS", variant.name)
        native._load_loops.cache_clear()
        assert native.describe_loops().name == f"compiled for {variant.name} with g++"
    assert asked == [(variant.options,) for variant in runnable]  # none is taken from the file of another


@pytest.mark.usefixtures("_afresh")
def test_a_wish_that_is_not_known_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTNLAB_LOOPS", "fastest")
    with pytest.raises(
        KernelError, match=r"ATTNLAB_LOOPS is 'fastest'; on this processor set it to 'native'.*, or leave it unset"
    ):
        native.describe_loops()


@pytest.mark.usefixtures("_afresh")
def test_a_damaged_cache_without_a_compiler_says_both(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    monkeypatch.setattr(library, "read", lambda file: unseal(b"", file))
    assert os.fspath(tmp_path) in native.describe_loops().reason
    assert "is empty; no C++ compiler found" in native._load_loops()[1].reason


@pytest.mark.parametrize(("line", "dropout"), [("dot | softmax", 0.0), ("dot | softmax", 0.1), ("cosine | relu", 0.1)])
def test_plain_attention_never_looks_for_the_loops(line: str, dropout: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "load_loops", lambda: pytest.fail("the loops were looked for"))
    q = torch.randn(1, 2, 70, 8, requires_grad=True)
    attend(q, q, q, line, causal=True, dropout=dropout).sum().backward()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_compiled_softmax_is_torchs(dtype: torch.dtype) -> None:
    scores = torch.randn(2, 3, 37, generator=torch.Generator().manual_seed(0)).to(dtype)
    weights = scores.clone()
    native.normalise(0, weights, 33)
    for row in range(3):
        seen = 34 + row
        torch.testing.assert_close(weights[:, row, :seen], torch.softmax(scores[:, row, :seen], -1))
        assert (weights[:, row, seen:] == 0).all()


def test_without_a_compiler_it_works_and_says_so_once(monkeypatch: pytest.MonkeyPatch) -> None:
    native.warn_missing.cache_clear()
    monkeypatch.setattr(native, "load_loops", lambda: (None, Loops(False, "none", "no C++ compiler found")))
    q, k, v = torch.randn(3, 1, 2, 9, 4, generator=torch.Generator().manual_seed(0)).unbind(0)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        outs = {line: attend(q, k, v, line, causal=True) for line in ("additive | softmax", "manhattan | softmax")}
        softmax = attend(q, k, v, "dot | softmax", causal=True, kernel="blockwise")
    assert [w.category for w in said] == [AttnlabWarning]
    assert "no C++ compiler" in str(said[0].message)
    assert "no C++ compiler" in explain("additive | softmax", length=9).refused["additive"]
    for line, out in outs.items():
        torch.testing.assert_close(out, attend(q, k, v, line, causal=True, kernel="reference"))
    torch.testing.assert_close(softmax, attend(q, k, v, "dot | softmax", causal=True))
    with pytest.raises(KernelError, match="no C"):
        attend(q, k, v, "additive | softmax", kernel="additive")
    native.warn_missing.cache_clear()
