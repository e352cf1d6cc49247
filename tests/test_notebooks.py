"""The notebooks of docs/notebooks run from top to bottom without a network, in small, and show what they compute."""

import ast
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent.parent / "docs" / "notebooks"
NOTEBOOKS = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
SMALL = {"NOTEBOOK_STEPS": "2", "NOTEBOOK_SEEDS": "1"}


def read(name: str) -> Any:
    return json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))


def run_cell(code: str, names: dict[str, Any]) -> Any:
    """Run a cell and return the value of its last line, as a notebook does."""
    tree = ast.parse(code)
    last = ast.Expression(tree.body.pop().value) if isinstance(tree.body[-1], ast.Expr) else None  # type: ignore[attr-defined]
    exec(compile(tree, "a cell", "exec"), names)
    return None if last is None else eval(compile(last, "a cell", "eval"), names)


def display(value: Any) -> Iterator[str]:
    """Yield what a notebook shows of a value."""
    yield repr(value)
    if hasattr(value, "_repr_mimebundle_"):
        yield value._repr_mimebundle_()["image/svg+xml"]
    elif hasattr(value, "_repr_html_"):
        yield value._repr_html_()


def test_there_are_three_notebooks() -> None:
    assert NOTEBOOKS == ["assignment", "idea-to-verdict", "swap-attention"]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_is_small_and_stored_without_outputs(name: str) -> None:
    assert (FOLDER / f"{name}.ipynb").stat().st_size < 30_000
    cells = read(name)["cells"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells if "outputs" in cell)
    assert len({cell["id"] for cell in cells}) == len(cells)


LONG = pytest.mark.skipif("ATTNLAB_SOAK" not in os.environ, reason="half a minute long: `make smoke` runs it")


@pytest.mark.usefixtures("own_stages")
@pytest.mark.parametrize(
    "name", [name if name == "swap-attention" else pytest.param(name, marks=LONG) for name in NOTEBOOKS]
)
def test_a_notebook_runs(
    name: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
    monkeypatch.delenv("NOTEBOOK_MODEL", raising=False)
    for variable, value in SMALL.items():
        monkeypatch.setenv(variable, value)
    names: dict[str, Any] = {"__name__": "__main__"}
    shown = []
    for cell in read(name)["cells"]:
        if cell["cell_type"] == "code":
            value = run_cell("".join(cell["source"]), names)
            shown += [] if value is None else list(display(value))
    assert len(shown) > 5
    assert all(len(text) < 1000 or text.startswith(("<div", "<svg")) for text in shown)
