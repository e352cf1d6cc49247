"""The attention of every arm on one text: which head is shown, and the words beside it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from attnlab.reports import write_report
from attnlab.reports.study.attention import choose_head, join_tokens, make_attention_section
from attnlab.studies.answers.attention_record import KIND, AttentionRecord, HeadWeights, choose_runs
from attnlab.studies.answers.study_folder import open_record
from attnlab.visible import make_visible

from .made import BASE, HIGH, Made

EVEN = np.full((2, 2, 4, 4), 0.25)


def differ(layer: int, head: int, by: float = 1.0) -> HeadWeights:
    """Return even weights, with one head on the diagonal."""
    weights = EVEN.copy()
    weights[layer, head] = by * np.eye(4)
    return HeadWeights(weights, (0, 1))


def test_the_head_that_differs_most_is_shown_and_scale_does_not_count() -> None:
    arms = {"dot": HeadWeights(EVEN, (0, 1)), "large": HeadWeights(100 * EVEN, (0, 1)), "other": differ(1, 0)}
    place, reason = choose_head(arms, "dot")
    assert place == (1, 0)
    assert (
        reason
        == "The head that differs most from dot: on average over arms, 38 % of a query’s attention goes elsewhere."
    )


def test_there_is_a_head_if_nothing_differs_or_is_compared() -> None:
    arms = {"dot": HeadWeights(EVEN, (0, 1)), "same": HeadWeights(EVEN, (0, 1))}
    assert choose_head(arms, "dot") == ((0, 0), "No head differs from that of dot; this is the first one.")
    assert choose_head({"other": differ(1, 1)}, "dot") == ((0, 0), "The first head.")


def test_models_of_different_sizes_are_compared_where_both_have_heads() -> None:
    arms = {"dot": HeadWeights(EVEN, (0, 1)), "small": HeadWeights(EVEN[:1, :1, :, 1:], (0,))}
    assert choose_head(arms, "dot")[0] == (0, 0)


def test_layers_are_compared_by_their_numbers() -> None:
    arms = {"dot": HeadWeights(EVEN, (0, 1)), "mixed": HeadWeights(differ(1, 1).weights[1:], (1,))}
    assert choose_head(arms, "dot")[0] == (1, 1)
    apart = {"dot": HeadWeights(EVEN[:1], (0,)), "mixed": HeadWeights(EVEN[:1], (1,))}
    assert choose_head(apart, "dot") == ((0, 0), "The first head.")


def test_tokens_are_written_as_a_text() -> None:
    assert join_tokens(["[CLS]", "un", "-like", "-ly", "-", "yes"]) == "[CLS] unlikely - yes"


def test_the_page_has_the_maps_the_text_and_what_is_missing(tmp_path: Path) -> None:
    made = Made(tmp_path / "made", arms={"dot": "dot | softmax", "better": "cosine | softmax", "lost": "dot | relu"})
    for arm, values in (("dot", BASE), ("better", HIGH), ("lost", BASE)):
        made.give(arm, values)
    arms = {"dot": HeadWeights(EVEN, (0, 1)), "better": differ(1, 1)}
    with open_record(made.folder) as record:
        assert make_attention_section(record) is not None
        runs = {run.arm: run.id for run in choose_runs(record)}
    tokens = ("a", "<b>", "\u202ec", "if")
    made.ledger.add_event(KIND, AttentionRecord(runs, tokens, arms, {"lost": "no & weights"}).dump())
    page = write_report(made.done()).read_text(encoding="utf-8")
    section = page[page.index('<section id="attention">') : page.index('<section id="data">')]
    for words in (
        "a &lt;b&gt; \\u202ec if",
        "Layer 1, head 1",
        "No map of lost: no &amp; weights.",
        "Every head of every arm",
    ):
        assert words in section
    assert make_visible(section) == section
    assert {path.name for path in (made.folder / "figures").glob("attention-*.svg")} == {
        "attention-recall-tiny.svg", "attention-recall-tiny-heads.svg",
    }  # fmt: skip


def test_the_page_says_why_there_are_none(page: str) -> None:
    assert "There are no maps: they are computed from the checkpoints of runs" in page
