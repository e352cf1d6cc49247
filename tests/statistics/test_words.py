"""Words that no output may have, since they say more than numbers can."""

import ast
from pathlib import Path

import pytest

import attnlab

SOURCE = Path(attnlab.__file__).parent
FORBIDDEN = ("significan", "≈ 0", "≈0", "proves", "proven")
# It lists the names of columns in other people's tables, which are read and never printed.
READ = SOURCE / "studies" / "integrity" / "tables" / "column_names.py"
FILES = sorted(
    {*(SOURCE / "statistics").rglob("*.py"), *(SOURCE / "studies").rglob("*.py"), SOURCE / "cli" / "judge.py"} - {READ}
)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_text_says_more_than_numbers_can(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            assert not [word for word in FORBIDDEN if word in node.value.lower()], node.value
