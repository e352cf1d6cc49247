"""A caption gives the number of seeds, the kind of spread and the metric, if it names exactly one."""

import pytest

from attnlab.studies.integrity.tables.caption import find_metric, find_num_seeds, find_spread_kind


@pytest.mark.parametrize(
    ("caption", "num"),
    [
        ("averaged over 5 random seeds", 5),
        ("mean of three independent runs", 3),
        ("3 seeds for base, 5 seeds for large", None),
        ("seeds", None),
        ("1 seeds", None),
    ],
)
def test_number_of_seeds(caption: str, num: int | None) -> None:
    assert find_num_seeds(caption) == num


@pytest.mark.parametrize(
    ("caption", "kind"),
    [
        ("mean and standard deviation", "sd"), ("± std. err.", "se"), ("± standard error", "se"),
        ("95% confidence intervals", "ci"), ("results", None),
        (r"95\% CI", "ci"), (r"mean $\pm$ 95\% CIs", "ci"), ("± s.e.m.", "se"), ("± SEM", "se"), ("± S.E.", "se"),
        ("± s.d. over 5 seeds", "sd"), ("± SD", "sd"), ("± std. error", "se"), ("± SD and 95% CI", None),
        ("± SE", "se"), ("not bad per se", None), ("results in 95 cities", None),
    ],
)  # fmt: skip
def test_kind_of_spread(caption: str, kind: str | None) -> None:
    assert find_spread_kind(caption) == kind


def test_metric() -> None:
    assert find_metric("table.tex", "Test accuracy (%)") == ("accuracy", "the caption")
    assert find_metric("squad_f1.csv", "") == ("f1", "the file's name")
    assert find_metric("table.tex", "Accuracy and F1") == ("", "")
