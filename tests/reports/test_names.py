"""Names of the rooms that show and print: a class has one name, and a package states what it exports."""

import ast
from collections import Counter
from pathlib import Path

import attnlab

SOURCE = Path(attnlab.__file__).parent
FILES = sorted(path for room in ("cli", "reports") for path in (SOURCE / room).rglob("*.py"))


def test_no_two_public_classes_share_a_name() -> None:
    bodies = [ast.parse(path.read_text(encoding="utf-8")).body for path in FILES]
    names = Counter(node.name for body in bodies for node in body if isinstance(node, ast.ClassDef))
    assert [name for name, count in names.items() if count > 1] == []


def test_every_package_states_what_it_exports() -> None:
    packages = [path for path in FILES if path.name == "__init__.py"]
    assert len(packages) == 6
    assert [path for path in packages if "__all__ = " not in path.read_text(encoding="utf-8")] == []
