"""The power of the length with which outputs grow."""

import pytest

import attnlab


def test_dividing_by_n_or_its_root_settles_who_stays_level() -> None:
    powers = {}
    for divide in ("1", "sqrt_n", "n"):
        finding = attnlab.audit(f"dot | relu(divide={divide})", checks=["magnitude"]).findings["magnitude"]
        powers[divide] = [round(part.figure, 1) for part in finding.parts]
    # random tokens, aligned tokens, random tokens of one value
    assert powers == {"1": [0.5, 1.0, 1.0], "sqrt_n": [0.0, 0.5, 0.5], "n": [-0.5, 0.0, 0.0]}


@pytest.mark.parametrize("line", ["euclidean | identity", "manhattan | identity"])
def test_weights_whose_sum_grows_with_the_length_are_found(line: str) -> None:
    assert not attnlab.audit(line, checks=["magnitude"]).passed
