"""The parts of the room import each other only as this table says; what is imported for types alone does not count."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import attnlab.studies

ROOT = Path(attnlab.studies.__file__).parent
MAY_IMPORT: dict[str, set[str]] = {
    "file": set(),
    "ledger": set(),
    "plan": {"file"},
    "run": {"file", "plan", "ledger"},
    "integrity": {"file", "plan", "ledger", "run"},
    "answers": {"file", "plan", "ledger", "run", "integrity"},
    "study": {"file", "plan", "ledger", "run", "integrity", "answers"},
    "simulation": {"plan", "ledger", "run", "answers", "study"},
    "cost": {"file", "plan", "ledger", "run", "answers", "study"},
}
WITHIN_INTEGRITY: dict[str, set[str]] = {
    "finding": set(),
    "tables": set(),
    "checks": {"finding", "tables"},
    "analysis": {"finding", "tables", "checks"},
    "options": {"tables", "checks"},
    "judgement": {"finding", "tables", "checks", "analysis", "options"},
    "study": {"finding", "tables", "checks", "analysis"},
}
TABLES = {"": MAY_IMPORT, "integrity": WITHIN_INTEGRITY}


def runtime_imports(tree: ast.AST) -> Iterator[ast.ImportFrom]:
    """Yield the relative imports of a module, but those under `if TYPE_CHECKING`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.ImportFrom) and node.level:
            yield node
        yield from runtime_imports(node)


@pytest.mark.parametrize("folder", TABLES)
def test_parts_import_only_what_the_table_allows(folder: str) -> None:
    table, root, wrong = TABLES[folder], ROOT / folder, []
    for file in sorted(root.rglob("*.py")):
        place = file.relative_to(root).parts
        own = place[0] if len(place) > 1 else file.stem
        if own == "__init__":
            continue
        for node in runtime_imports(ast.parse(file.read_text(encoding="utf-8"))):
            if node.level > len(place):  # an import from outside the folder
                continue
            path = [*place[: len(place) - node.level], *(node.module or "").split(".")]
            if path[0] != own and path[0] not in table[own]:
                wrong.append(f"{'/'.join(place)}:{node.lineno}: {own} may not import {path[0]}")
    assert wrong == []


@pytest.mark.parametrize("folder", TABLES)
def test_the_table_has_no_cycle_and_every_part(folder: str) -> None:
    table, root = TABLES[folder], ROOT / folder
    parts = {path.stem for path in root.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert set(table) == parts - {"__init__"}
    settled: set[str] = set()
    while len(settled) < len(table):
        ready = {part for part, allowed in table.items() if allowed <= settled} - settled
        assert ready, sorted(set(table) - settled)
        settled |= ready
