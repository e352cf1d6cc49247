"""Arm and seed are taken from names only if all names show them."""

import pytest

from attnlab.studies.integrity.tables.run_names import split_run_names


@pytest.mark.parametrize(
    ("names", "pairs"),
    [
        (["cosine-seed3", "base-seed3"], [("cosine", "3"), ("base", "3")]),
        (["seed=1_cosine", "seed=2_cosine"], [("cosine", "1"), ("cosine", "2")]),
        (["cosine_s1", "cosine_s2"], [("cosine", "1"), ("cosine", "2")]),
        (["a/run-1", "a/run-2", "b/run-1", "b/run-2"], [("a", "1"), ("a", "2"), ("b", "1"), ("b", "2")]),
        (["base-1", "base-2", "new-1", "new-2"], [("base", "1"), ("base", "2"), ("new", "1"), ("new", "2")]),
        (["fluffy-sun-12", "brave-moon-13"], None),
        (["gpt2", "bert"], None),
        (["base-seed1", "new"], None),
    ],
)
def test_names_of_runs(names: list[str], pairs: list[tuple[str, str]] | None) -> None:
    assert split_run_names(names) == ({} if pairs is None else dict(zip(names, pairs, strict=True)))
