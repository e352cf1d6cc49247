"""The compiled loops: how they are built, and what happens without a compiler."""

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from attnlab import attend, explain
from attnlab.errors import AttnlabWarning, KernelError
from attnlab.kernels.cpu import native
from attnlab.kernels.cpu.native import Compiler


@pytest.fixture
def _afresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Let the loops be loaded anew, from an empty cache."""
    monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path))
    native._load_loops.cache_clear()
    yield
    native._load_loops.cache_clear()


@pytest.mark.usefixtures("_afresh")
def test_a_compiler_that_does_not_exist_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert native.compiler().reason == "no C++ compiler found ($CXX is 'no-such-compiler', which is not found)"
    with pytest.raises(KernelError, match="no-such-compiler"):
        native.normalise(0, torch.zeros(1, 1, 1), 0)


@pytest.mark.usefixtures("_afresh")
def test_a_compiler_that_fails_is_reported_with_its_message(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = tmp_path / "broken"
    script.write_text("#!/bin/sh\necho note >&2\necho some error here >&2\nexit 1\n", encoding="utf-8")
    script.chmod(0o755)
    monkeypatch.setenv("CXX", str(script))
    state = native.compiler()
    assert not state.available
    assert state.reason == f"{script} could not build the loops: some error here"


@pytest.mark.usefixtures("_afresh")
def test_a_library_that_cannot_be_loaded_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def write_nonsense(compiler: list[str], target: Path) -> None:
        target.write_bytes(b"not a library")

    monkeypatch.setattr(native, "_build", write_nonsense)
    assert "delete it, and it is built again" in native.compiler().reason


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
    monkeypatch.setattr(native, "load_loops", lambda: (None, Compiler(False, None, "no C++ compiler found")))
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
