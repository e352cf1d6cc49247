"""One name, one idea: no two public classes share a name, and a package that exports names states which."""

import ast
from collections import defaultdict
from pathlib import Path

import attnlab

SOURCE = Path(attnlab.__file__).parent


def test_no_two_public_classes_share_a_name() -> None:
    files_by_class = defaultdict(list)
    for path in SOURCE.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                files_by_class[node.name].append(str(path.relative_to(SOURCE)))
    assert {name: files for name, files in files_by_class.items() if len(files) > 1} == {}


def test_every_package_states_what_it_exports() -> None:
    packages = {path: ast.parse(path.read_text(encoding="utf-8")).body for path in SOURCE.rglob("__init__.py")}
    with_names = [path for path, body in packages.items() if any(not isinstance(node, ast.Expr) for node in body)]
    assert len(with_names) > 10
    assert [str(path) for path in with_names if "__all__" not in path.read_text(encoding="utf-8")] == []
