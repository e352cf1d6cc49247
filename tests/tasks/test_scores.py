"""Scores know their primary figure, its direction, clusters and references."""

import numpy as np
import pytest

from attnlab.errors import TaskError
from attnlab.tasks.scores import Reference, Scores, compute_shares, find_clusters

from .test_predictions import Example


def make_scores(primary: str = "accuracy") -> Scores:
    figures = {"accuracy": 0.5, "loss": 1.0}
    examples = {"accuracy": np.array([1.0, 0.0])}
    return Scores("mqar", primary, figures, ["a", "b"], examples, clusters=["x", "x"], floor=Reference(0.2, "guess"))


def test_the_primary_figure_has_a_direction() -> None:
    assert (make_scores().value, make_scores().higher_is_better) == (0.5, True)
    assert (make_scores("loss").value, make_scores("loss").higher_is_better) == (1.0, False)


def test_a_record_has_figures_and_references() -> None:
    record = make_scores().record()
    assert record["accuracy"] == 0.5
    wanted = {"floor": 0.2, "floor_strategy": "guess", "ceiling": None, "num_documents": 2, "num_clusters": 1}
    assert record["reference"] == wanted


def test_an_unknown_score_of_examples_names_the_closest() -> None:
    assert make_scores().of_examples("accuracy").tolist() == [1.0, 0.0]
    with pytest.raises(TaskError, match="did you mean 'accuracy'"):
        make_scores().of_examples("acuracy")


def test_shares_have_the_ratio_as_their_mean() -> None:
    assert compute_shares([1, 2, 3], 12).mean() == pytest.approx(0.5)


def test_examples_form_clusters_only_if_two_share_one() -> None:
    class Clustered(Example):
        cluster: str | None = None

    one, two, three = (Clustered(name, "row") for name in "abc")
    assert find_clusters([one, two]) is None
    one.cluster = two.cluster = "article"
    assert find_clusters([one, two, three], "line ") == ["article", "article", "line c"]
