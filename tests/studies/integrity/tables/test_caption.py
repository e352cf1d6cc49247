"""A caption gives the number of seeds, the kind of spread and the metric, if it names exactly one."""

import pytest

from attnlab.studies.integrity.tables.caption import (
    describe_doubt_about_seeds,
    find_metric,
    find_num_seeds,
    find_spread_kind,
)
from attnlab.studies.integrity.tables.metrics import higher_is_better


@pytest.mark.parametrize(
    ("caption", "num"),
    [
        ("averaged over 5 random seeds", 5),
        ("mean of three independent runs", 3),
        ("3 seeds for base, 5 seeds for large", None),
        ("averaged over 10 random initialisations", 10),
        ("averaged over 4 initializations", 4),
        ("mean over $n=5$ seeds", 5),
        ("mean over $n = 5$~random seeds", 5),
        ("mean over seeds ($n=7$)", 7),
        ("mean over 6\\,seeds", 6),
        ("seeds", None),
        ("1 seeds", 1),
        ("mean ± SD, n = 5", 5),
        ("mean ± SD over the test set (n = 1000)", None),
        ("Mean BLEU (n = 4)", None),
        ("30 of 30 runs have ended; 5 seeds per arm; a test of spread needs 8 seeds per arm", 5),
    ],
)
def test_number_of_seeds(caption: str, num: int | None) -> None:
    assert find_num_seeds(caption) == num


@pytest.mark.parametrize(
    "caption",
    [
        "1 seed", "a single seed", "one run each", "Results of a single run.", "n = 1", "Accuracy ($n=1$).",
        "single-seed results", "one random seed", r"\textbf{one} training run", "Each model is trained once.",
        "n = 1 per arm",
    ],
)  # fmt: skip
def test_one_seed_in_words(caption: str) -> None:
    assert find_num_seeds(caption) == 1
    assert not describe_doubt_about_seeds(caption)


@pytest.mark.parametrize(
    "caption",
    [
        "1 GPU per run",
        "One run takes 3 hours.",
        "seed 1",
        "Table 1 runs on GPU",
        "BLEU (n = 1)",
        "n = 1.5",
        "one epoch",
    ],
)
def test_a_one_that_counts_something_else(caption: str) -> None:
    assert find_num_seeds(caption) is None


@pytest.mark.parametrize(
    ("caption", "num", "doubt"),
    [
        ("5 seeds, one run per seed", 5, ""),
        ("one of five runs", 5, ""),
        ("Means over 5 seeds; rows with * are of a single run.", 5, "the caption also says 'single run'"),
        ("3 seeds for base, 5 seeds for large", None, "the caption names 3 and 5 seeds, so none is taken"),
    ],
)
def test_what_else_a_caption_says_of_seeds(caption: str, num: int | None, doubt: str) -> None:
    assert find_num_seeds(caption) == num
    assert describe_doubt_about_seeds(caption).startswith(doubt)
    assert bool(describe_doubt_about_seeds(caption)) == bool(doubt)


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
    assert find_metric("table.tex", "Accuracy (Acc.) on GLUE")[1] == "the caption"
    assert find_metric("table.tex", "Cross-entropy loss on C4") == ("crossentropy", "the caption")


@pytest.mark.parametrize("metric", ["bpb", "xent", "nll", "ppl", "acc", "fid", "cross_entropy"])
def test_metric_in_the_name_of_a_file(metric: str) -> None:
    named, source = find_metric(f"out/{metric}.csv", "")
    assert (named, source) == (metric.replace("_", ""), "the file's name")
    assert higher_is_better(named) == (metric == "acc")
