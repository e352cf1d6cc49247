"""A construction shows its query in a notebook, shortened if it is long."""

import torch

from attnlab.construct import EXAMPLE_KEYS, average, select
from attnlab.construct.construction import write_vector


def test_the_facts_have_the_query_and_the_error() -> None:
    facts = select(EXAMPLE_KEYS, 0).facts()
    assert [row[0] for row in facts.rows] == ["query", "error"]
    assert facts.is_good
    assert [row[0] for row in average([[0, 0], [1, 0], [3, 0], [0, 1]], [0, 1]).facts().rows] == ["error"]


def test_a_long_vector_is_cut() -> None:
    assert write_vector(torch.tensor([1.0, -2.0])) == "(1, −2)"
    assert write_vector(torch.zeros(20)).endswith("0, … (20 numbers))")
