"""What the words of a verdict mean, in two sentences each; docs/statistics.md and every report have them from here."""

from __future__ import annotations

from collections.abc import Mapping

from attnlab.errors import StatisticsError

MEANINGS: Mapping[str, str] = {
    "NOT COMPARABLE": (
        "The arms differ in more than what is asked about, for the reason in parentheses, such as a leak or runs "
        "that are not paired. It is also said if one arm fails so much more often (Fisher's exact test, p < 0.05, "
        "however many arms or looks there are) that the runs which finished are not a fair sample of it."
    ),
    "STILL TRAINING": (
        "In the last fifth of training an arm still gained more than half of `smallest`, so longer runs may show "
        "something else. What the scores show up to now follows, with SO FAR behind it."
    ),
    "AMONG RUNS THAT FINISHED": (
        "One arm failed or diverged more often than the other, so the runs that are compared are a selection of its "
        "better ones. The words hold for runs that finish; the reason beside them says whether the difference is still "
        "shown with every failed run counted as the worst result."
    ),
    "BELOW YOUR THRESHOLD": (
        "There is a difference, but the best estimate of it is smaller than what you said is worth having. More "
        "seeds may place it more exactly, and will rarely make it larger."
    ),
    "BY AT LEAST": (
        "The whole interval is at or beyond `smallest`, so even the end nearer to 0 is a difference worth having. "
        "Plain BETTER says only that there is a difference; this says that it is large enough."
    ),
    "BETTER": (
        "The interval lies on the good side of 0, so the variant would very likely win again with other seeds "
        "(and other examples, if there were scores of examples). How much better it is, only the interval says: "
        "it may hold differences below `smallest`."
    ),
    "WORSE": (
        "The interval lies on the bad side of 0, so the variant would very likely lose again. It is also said if "
        "a test that counts every failed run as the worst possible result shows it."
    ),
    "NO MEANINGFUL DIFFERENCE": (
        "The whole interval is nearer to 0 than `smallest`, in both directions. This is a finding, unlike "
        "INCONCLUSIVE: whatever difference there is, it is too small to be worth having."
    ),
    "INCONCLUSIVE": (
        "The interval holds 0 and also differences worth having, so the seeds do not settle the question. The "
        "number of further seeds per arm gives 80 % power to settle it if the difference stays where it is, and "
        "is ∞ if examples are lacking rather than seeds."
    ),
    "TOO FEW SEEDS": (
        "An arm has fewer than 5 seeds with a score, and their spread is then as good as unknown. Nothing is said "
        "whatever they show."
    ),
    "NEITHER LEARNED THE TASK": (
        "No arm's own 95 % interval over seeds is beyond what a trivial strategy scores, such as naming the "
        "commonest answer. Which of two models that have not learned a task is ahead says nothing about their "
        "mechanisms, so it is not said."
    ),
    "BOTH AT CEILING": (
        "Both arms are within `smallest` of the best possible score, or perfect in every seed, and no difference "
        "shows. The task is too easy to tell them apart: take a harder one."
    ),
    "DEGENERATE": (
        "The differences have no spread at all, so there is nothing to measure a difference by. Usually runs were "
        "copied, or the variant is not in the model."
    ),
    "LESS STABLE": (
        "The variant's seeds vary more than the baseline's, or more of its runs fail. This is tested from 8 seeds "
        "on and said apart from the verdict."
    ),
    "MORE STABLE": (
        "The variant's seeds vary less than the baseline's, or fewer of its runs fail. This is tested from 8 "
        "seeds on and said apart from the verdict."
    ),
    "STABILITY UNKNOWN": (
        "There are too few seeds to test their spread, or the test showed nothing. It does not mean that the arms "
        "are equally stable."
    ),
    "CHANGED AFTER LOOKING": (
        "Something that had been fixed was changed after a verdict had been seen, and what it was stands in "
        "parentheses. Choices made after looking can find a difference in anything, so read the verdict as an "
        "exploration."
    ),
    "UNDECLARED LOOK": (
        "A verdict had been seen before, and more seeds were added without having declared it; the number counts "
        "the looks. Testing anew at each look finds differences where there are none (18.5 % after each of 5 to "
        "20 seeds), so this one is judged by the e-process, which may be looked at any time."
    ),
    "AS REGISTERED": (
        "Arms, seeds, looks, `smallest` and family are what was fixed before the first verdict was seen. The "
        "false-positive rate holds as it stands."
    ),
}
"""Every word. A verdict may hold several; the first of these is the one that most needs to be explained."""


def find_word(words: str) -> str:
    """Return the word of a verdict that most needs to be explained, a key of MEANINGS."""
    # What stands in parentheses is a number or a reason, which may hold any words.
    phrase = words.partition("(")[0]
    for word in MEANINGS:
        if word in phrase:
            return word
    raise StatisticsError(f"'{words}' are not the words of a verdict; docs/statistics.md has them all")


def verdict_anchor(words: str) -> str:
    """Return the anchor in docs/statistics.md, and in a report, that explains a verdict: 'better' for BETTER."""
    return find_word(words).lower().replace(" ", "-")
