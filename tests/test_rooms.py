"""The import table of ARCHITECTURE.md, enforced: which room of attnlab may import which."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "attnlab"

FOUNDATION = {"mechanisms", "data", "statistics", "charts"}
BELOW_STUDIES = FOUNDATION | {"kernels", "construct", "install", "audits", "heads", "tasks", "training"}

MAY_IMPORT: dict[str, set[str]] = {
    "mechanisms": set(),
    "data": set(),
    "statistics": set(),
    "charts": set(),
    "kernels": {"mechanisms"},
    "construct": {"mechanisms", "kernels", "charts"},
    "install": {"mechanisms", "kernels"},
    "audits": {"mechanisms", "kernels", "install", "charts"},
    "heads": {"mechanisms", "kernels", "install", "charts"},
    "tasks": {"data", "install"},
    "training": {"tasks", "data", "install"},
    "studies": BELOW_STUDIES,
    "reports": BELOW_STUDIES | {"studies"},
    "cli": BELOW_STUDIES | {"studies", "reports"},
}

# Modules beside the rooms are open to all and import no room; the package itself offers every room but the command
# line; `python -m attnlab` is the one place that starts it.
MODULES_MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "machine": set(),
    "denormals": set(),
    "lazy": set(),
    "checksums": set(),
    "ownership": set(),
    "hub": set(),
    "special_tokens": set(),
    "pretrained": set(),
    "notebook": set(),
    "check_names": set(),
    "inputs": set(),
    "visible": set(),
    "console": set(),
    "__init__": set(MAY_IMPORT) - {"cli"},
    "__main__": {"cli"},
}

# Programs inside a room, run by `python -m` and imported by nothing, and what they may import besides.
PROGRAMS_MAY_IMPORT: dict[str, set[str]] = {"statistics/__main__.py": {"studies"}}

# `import attnlab` makes every room reachable as an attribute, so only the top of the table may say it.
PACKAGE = "the package itself"
MAY_IMPORT_PACKAGE = {"cli"}


def owner_of(module: Path, source: Path) -> str:
    """Name the room a file is in, or the root module it is."""
    parts = module.relative_to(source).parts
    return parts[0] if len(parts) > 1 else module.stem


def imported_names(module: Path, source: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and the full dotted name of everything a module imports, wherever it does so."""
    package = ("attnlab", *module.relative_to(source).parts[:-1])
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else ()
            prefix = ".".join((*start, *([node.module] if node.module else [])))
            for alias in node.names:
                yield node.lineno, f"{prefix}.{alias.name}"


def imported_owner(name: str) -> str | None:
    """Name the room or root module that a dotted name belongs to; None where it is not ours."""
    top, *rest = name.split(".")
    if top != "attnlab":
        return None
    if rest and (rest[0] in MAY_IMPORT or rest[0] in MODULES_MAY_IMPORT):
        return rest[0]
    return PACKAGE


def violations(source: Path) -> list[str]:
    """List every import under a source tree that the table forbids."""
    found = []
    for module in sorted(source.rglob("*.py")):
        owner = owner_of(module, source)
        where = module.relative_to(source)
        if owner not in MAY_IMPORT and owner not in MODULES_MAY_IMPORT:
            found.append(f"{where}: {owner} is not in the table")
            continue
        allowed = {owner} | (MAY_IMPORT | MODULES_MAY_IMPORT)[owner]
        allowed |= PROGRAMS_MAY_IMPORT.get(where.as_posix(), set())
        if owner not in ("errors", "lazy", "checksums"):
            allowed |= {"errors", "machine", "lazy", "notebook", "hub", "pretrained", "inputs", "visible", "console"}
            allowed |= {"checksums", "ownership", "denormals", "special_tokens", "check_names"}
        if owner in MAY_IMPORT_PACKAGE:
            allowed.add(PACKAGE)
        for line, name in imported_names(module, source):
            target = imported_owner(name)
            if target is not None and target not in allowed:
                found.append(f"{where}:{line}: {owner} may not import {target} ({name})")
    return found


ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")


def architecture_table() -> Iterator[tuple[str, str]]:
    """Yield each package and what it may import, from ARCHITECTURE.md."""
    for line in ARCHITECTURE.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) == 3 and re.fullmatch(r"`\w+`", cells[0]):
            yield cells[0].strip("`"), cells[2]


def rooms_in(cell: str, rooms_above: set[str]) -> set[str]:
    if cell == "nothing":
        return set()
    if cell == "every package above":
        return set(rooms_above)
    return set(cell.split(", "))


def test_no_room_imports_what_the_table_forbids() -> None:
    assert violations(SOURCE) == []


def test_nothing_imports_cli() -> None:
    assert [room for room, allowed in MAY_IMPORT.items() if "cli" in allowed] == []
    assert "cli" not in MODULES_MAY_IMPORT["__init__"]


def test_cli_has_no_html_or_javascript() -> None:
    files = [file for file in (SOURCE / "cli").rglob("*") if file.is_file() and file.suffix != ".pyc"]
    assert {file.suffix for file in files} == {".py", ".toml"}
    markup = re.compile(r"</?(html|head|body|div|script|span|svg|style|table)\b|\bdocument\.|\bwindow\.", re.IGNORECASE)
    assert [file.name for file in files if markup.search(file.read_text(encoding="utf-8"))] == []


def test_the_table_has_no_cycle() -> None:
    settled: set[str] = set()
    while len(settled) < len(MAY_IMPORT):
        ready = {room for room, allowed in MAY_IMPORT.items() if allowed <= settled} - settled
        assert ready, f"a cycle among {sorted(set(MAY_IMPORT) - settled)}"
        settled |= ready


def test_architecture_shows_the_same_table() -> None:
    shown: dict[str, set[str]] = {}
    for room, cell in architecture_table():
        shown[room] = rooms_in(cell, set(shown))
    assert shown == MAY_IMPORT


def test_architecture_names_every_package_and_only_files_that_exist() -> None:
    packages = {folder.name for folder in SOURCE.iterdir() if (folder / "__init__.py").exists()}
    assert {room for room, _ in architecture_table()} == packages
    files = {path.relative_to(ROOT).as_posix() for path in ROOT.glob("src/**/*.*")}
    files |= {path.relative_to(ROOT).as_posix() for path in ROOT.glob("tests/*.py")}
    named = re.findall(r"`([\w/]+\.(?:py|cpp))`", ARCHITECTURE)
    assert [name for name in named if not any(f"/{file}".endswith(f"/{name}") for file in files)] == []


@pytest.mark.parametrize(
    ("path", "code", "forbidden"),
    [
        ("mechanisms/stage.py", "import attnlab.kernels.reference", "kernels"),
        ("mechanisms/stage.py", "from attnlab import kernels", "kernels"),
        ("mechanisms/stage.py", "from ..kernels import reference", "kernels"),
        ("mechanisms/stage.py", "from .. import kernels", "kernels"),
        ("mechanisms/deep/stage.py", "from ...kernels import reference", "kernels"),
        ("mechanisms/stage.py", "def late():\n    from attnlab.kernels import reference", "kernels"),
        (
            "mechanisms/stage.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import attnlab.kernels",
            "kernels",
        ),
        ("kernels/reference.py", "from attnlab import attend", PACKAGE),
        ("kernels/reference.py", "import attnlab", PACKAGE),
        ("reports/study/page.py", "from attnlab.cli import main", "cli"),
        ("__init__.py", "from attnlab.cli import main", "cli"),
        ("errors.py", "from attnlab.mechanisms import Mechanism", "mechanisms"),
        ("machine.py", "from attnlab.kernels import explain", "kernels"),
    ],
)
def test_a_planted_violation_is_found(tmp_path: Path, path: str, code: str, forbidden: str) -> None:
    planted = tmp_path / path
    planted.parent.mkdir(parents=True, exist_ok=True)
    planted.write_text(code, encoding="utf-8")
    assert len(violations(tmp_path)) == 1
    assert f"may not import {forbidden} " in violations(tmp_path)[0]


def test_a_room_outside_the_table_is_found(tmp_path: Path) -> None:
    (tmp_path / "helpers").mkdir()
    (tmp_path / "helpers" / "__init__.py").touch()
    assert violations(tmp_path) == ["helpers/__init__.py: helpers is not in the table"]


def test_what_the_table_allows_is_allowed(tmp_path: Path) -> None:
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "blockwise.py").write_text(
        "import torch\nfrom attnlab.errors import KernelError\nfrom attnlab.mechanisms import Mechanism\n"
        "from . import reference\nfrom .reference import attend\n",
        encoding="utf-8",
    )
    assert violations(tmp_path) == []
