"""Findings are distinguished by their kind: no source matches on names, titles and sentences, which are for readers."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import attnlab
from attnlab.audits import CHECKS
from attnlab.studies.integrity import IntegrityFinding, IntegrityKind

SOURCES = sorted(Path(attnlab.__file__).parent.rglob("*.py"))
NAMES = {name for checks in CHECKS.values() for name in checks if " " in name} | {kind.value for kind in IntegrityKind}
TEXT_METHODS = {"startswith", "endswith", "partition", "find", "index", "count", "split", "removeprefix"}


def is_sentence(node: ast.AST) -> bool:
    """Tell whether an expression is the sentence or the title of a finding."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and node.slice.value == "sentence"
    return isinstance(node, ast.Attribute) and node.attr in ("sentence", "check")


def find_matches(tree: ast.AST) -> Iterator[int]:
    """Yield the lines that compare a sentence, or search a text for part of a check's name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            constants = {side.value for side in sides if isinstance(side, ast.Constant)}
            is_search = isinstance(node.ops[0], ast.In | ast.NotIn) and not isinstance(sides[1], ast.Tuple | ast.Set)
            if any(map(is_sentence, sides)) or constants & NAMES or (is_search and "leak" in constants):
                yield node.lineno
        elif isinstance(node, ast.Attribute) and node.attr in TEXT_METHODS and is_sentence(node.value):
            yield node.lineno


def test_no_source_matches_on_a_name_or_a_sentence() -> None:
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in SOURCES}
    assert [f"{path.name}:{line}" for path, tree in trees.items() for line in find_matches(tree)] == []


@pytest.mark.parametrize(
    "line", ['"leak" in name', 'one["name"] == "causal leak"', 'finding.sentence.startswith("a")', 'x.check == "y"']
)
def test_such_a_match_is_found(line: str) -> None:
    assert list(find_matches(ast.parse(line))) == [1]


def test_every_check_of_ours_has_a_kind() -> None:
    ours = [check for checks in CHECKS.values() for check in checks.values() if "attnlab." in check.function.__module__]
    assert len(ours) > 10
    assert [check.name for check in ours if check.kind == "other"] == []


def test_a_record_has_the_kind_for_programs_and_the_title_for_readers() -> None:
    record = IntegrityFinding(IntegrityKind.LEAK, "it sees the future").record()
    assert (record["kind"], record["check"]) == ("leak", "a leaking arm")
