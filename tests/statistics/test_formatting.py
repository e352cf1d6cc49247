"""A comparison as text and as JSON, and how numbers are written."""

import json
import math

import numpy as np
import pytest

from attnlab.statistics import compare
from attnlab.statistics.formatting import percent, plain, show, show_count, show_p, signed

RNG = np.random.default_rng(11)
BASELINE = RNG.normal(70, 0.5, 10)
VARIANT = BASELINE + RNG.normal(2.0, 0.5, 10)


def test_a_record_is_json_and_has_every_seed() -> None:
    record = json.loads(json.dumps(compare(BASELINE, VARIANT).record(), allow_nan=False))
    assert record["verdict"] == "BETTER BY AT LEAST 1"
    assert record["difference"] == pytest.approx(float((VARIANT - BASELINE).mean()))
    assert [row["variant"] for row in record["per_seed"]] == pytest.approx(VARIANT.tolist())
    assert set(record["plan"]) == {"sd", "sd_bound", "more_seeds", "is_decided", "seeds_needed", "detectable"}
    assert set(record["plan"]["seeds_needed"]) == {"0.8", "0.9"}


def test_print_leads_with_the_verdict_and_shows_every_seed() -> None:
    lines = str(compare(dict(zip("abcdefghij", BASELINE, strict=True)), dict(zip("abcdefghij", VARIANT, strict=True))))
    assert lines.startswith("BETTER BY AT LEAST 1: ")
    assert "\nSTABILITY UNKNOWN: " in lines
    for seed in "abcdefghij":
        assert f"\n  {seed}  " in lines


def test_print_says_whether_seeds_were_paired_and_how_to_get_the_other() -> None:
    paired, unpaired = (str(compare(BASELINE, VARIANT, paired=paired)) for paired in (True, False))
    assert "pairing      paired: the same place or name is the same seed in both arms" in paired
    assert "give paired=False" in paired
    assert "pairing      unpaired; if the same place or name" in unpaired
    assert "give paired=True" in unpaired


def test_a_plan_is_not_made_for_what_is_decided() -> None:
    rng = np.random.default_rng(1)
    baseline, noise = rng.normal(70, 2, 5), rng.normal(0, 2, 5)
    decided = compare(baseline, baseline + noise - noise.mean() + 8.0, smallest=0.2)
    assert decided.verdict.startswith("BETTER")
    assert (decided.plan.more, decided.record()["plan"]["is_decided"]) == (0.0, True)
    assert "decided with 5 per arm; no more are needed" in str(decided)
    assert "power)" not in str(decided)
    still_open = compare(baseline, baseline + noise, smallest=1.0)
    assert still_open.verdict == f"INCONCLUSIVE (about {still_open.plan.more:.0f} more seeds)"
    assert f"about {still_open.plan.more:.0f} more per arm if the difference stays at" in str(still_open)


def test_only_the_first_30_seeds_are_printed() -> None:
    scores = RNG.normal(70, 1, 40)
    assert str(compare(scores, scores + RNG.normal(0, 1, 40))).endswith("\n  … and 10 more")


def test_a_failed_run_is_printed_as_failed() -> None:
    last = str(compare(BASELINE, [*VARIANT[:9], None])).splitlines()[-1]
    assert last.split() == ["10", f"{BASELINE[-1]:.6g}", "failed"]


def test_differences_on_the_log_scale_are_printed_in_percent() -> None:
    found = compare(np.log(BASELINE), np.log(1.1 * BASELINE) + RNG.normal(0, 1e-4, 10), scale="log")
    assert all(line.endswith(" %") for line in str(found).splitlines()[-10:])


def test_numbers_use_a_real_minus_and_a_dash_for_nan() -> None:
    assert (show(-0.12345), signed(-2.0), signed(2.0)) == ("−0.123", "−2", "+2")
    assert (show(math.nan), signed(math.nan), show_count(math.nan)) == ("–", "–", "–")
    assert (signed(math.inf), signed(-math.inf), show_count(math.inf)) == ("+∞", "−∞", "no number")
    assert (percent(0.95), percent(1 - 0.05 / 3), show_count(7.0)) == ("95 %", "98.3333 %", "7")
    assert (show_p(0.0501), show_p(1e-9), show_p(math.nan)) == ("p = 0.0501", "p < 0.0001", "p unknown")


def test_plain_values_are_json() -> None:
    value = {1: (math.nan, 2.5), "words": ["BETTER", math.inf, None], "is_paired": True}
    assert plain(value) == {"1": [None, 2.5], "words": ["BETTER", None, None], "is_paired": True}
    json.dumps(plain(value), allow_nan=False)
