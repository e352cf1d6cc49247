"""The second import table of ARCHITECTURE.md, enforced: what the parts of a package may import from each other.

A part is a sub-package or a file. What is imported for type checking only does not count.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "attnlab"
PACKAGES = (
    "kernels",
    "audits",
    "data",
    "tasks",
    "training",
    "studies",
    "studies/integrity",
    "studies/integrity/tables",
    "reports",
)


def read_table() -> dict[str, dict[str, set[str]]]:
    """Read the rows `package` | `part`: names · `part`: names."""
    table = {}
    for line in (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) == 2 and re.fullmatch(r"`[\w/]+`", cells[0]):
            rows = (entry.split(":") for entry in cells[1].split(" · "))
            parts = {part.strip("` "): names.strip() for part, names in rows}
            table[cells[0].strip("`")] = {
                part: set() if names == "nothing" else set(names.split(", ")) for part, names in parts.items()
            }
    return table


def find_imports(tree: ast.AST) -> Iterator[ast.ImportFrom]:
    """Yield the imports of a module, wherever they are, except those under `if TYPE_CHECKING`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.ImportFrom):
            yield node
        yield from find_imports(node)


def list_targets(node: ast.ImportFrom, place: tuple[str, ...], package: str) -> list[str]:
    """List the parts of a package that an import in one of its files names."""
    if node.level > len(place):
        return []
    module = node.module.split(".") if node.module else []
    if node.level:
        module = [*place[: len(place) - node.level], *module]
    else:
        prefix = ["attnlab", *package.split("/")]
        if module[: len(prefix)] != prefix:
            return []
        module = module[len(prefix) :]
    return module[:1] or [alias.name for alias in node.names]


def import_graph(package: str) -> dict[str, set[str]]:
    """Map each part of a package to the other parts it imports."""
    folder = SOURCE / package
    graph: dict[str, set[str]] = defaultdict(set)
    for file in sorted(folder.rglob("*.py")):
        place = file.relative_to(folder).parts
        part = place[0] if len(place) > 1 else file.stem
        if part != "__init__":
            for node in find_imports(ast.parse(file.read_text(encoding="utf-8"))):
                graph[part] |= set(list_targets(node, place, package)) - {part}
    return graph


def list_subpackages(package: str) -> set[str]:
    return {path.parent.name for path in (SOURCE / package).glob("*/__init__.py")}


def test_every_package_with_parts_is_in_the_table() -> None:
    nested = {path.parent.parent.relative_to(SOURCE).as_posix() for path in SOURCE.glob("*/**/__init__.py")} - {"."}
    assert nested == set(PACKAGES)
    assert set(read_table()) == set(PACKAGES)


@pytest.mark.parametrize("package", PACKAGES)
def test_parts_import_only_what_the_table_allows(package: str) -> None:
    graph = import_graph(package)
    assert {part: graph[part] for part in sorted(list_subpackages(package))} == read_table()[package]


@pytest.mark.parametrize("package", PACKAGES)
def test_parts_do_not_import_each_other_in_a_circle(package: str) -> None:
    graph = import_graph(package)
    settled: set[str] = set()
    while unsettled := {part for part in graph if part not in settled}:
        ready = {part for part in unsettled if not (graph[part] & unsettled)}
        assert ready, f"a cycle among {sorted(unsettled)}"
        settled |= ready


def test_a_planted_import_is_found() -> None:
    node = next(find_imports(ast.parse("def late():\n    from ..ledger import database")))
    assert list_targets(node, ("file", "design.py"), "studies") == ["ledger"]
    node = next(find_imports(ast.parse("from attnlab.studies.run import server")))
    assert list_targets(node, ("file", "design.py"), "studies") == ["run"]
    assert not list(find_imports(ast.parse("if TYPE_CHECKING:\n    from ..ledger import database")))
