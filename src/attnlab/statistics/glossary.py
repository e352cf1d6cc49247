"""The meaning of each word of a verdict or finding, in two sentences each; docs/statistics.md and reports use these."""

import re
from collections.abc import Iterable, Mapping

from attnlab.errors import StatisticsError

_GLOSSARY = """
NOT COMPARABLE: The arms differ in more than the mechanism under test, for the reason in parentheses, such as a leak
  or runs that are not paired. This verdict is also given if one arm fails so much more often (Fisher's exact test,
  p < 0.05, for any number of arms or looks) that its finished runs are not a fair sample.
STILL TRAINING: In the last fifth of training an arm still gained more than half of `smallest`, so longer runs may
  give another result. The verdict on the present scores follows, marked SO FAR.
AMONG RUNS THAT FINISHED: One arm failed or diverged more often than the other, so the finished runs that are
  compared may be its better ones. The verdict holds only for runs that finish; the reason printed with it says
  whether the difference is still found if every failed run counts as the worst result.
BASELINE AT THE EDGE OF ITS GRID: In more than half of the seeds the baseline's best value is the smallest or largest
  that was tried, so it may do better with one that was not. Try more values on that side (`extend = true`) before
  you believe that the variant is better.
BELOW YOUR THRESHOLD: There is a difference, but its estimate is smaller than `smallest`, the difference that you
  called worth having. More seeds will measure it more precisely, and will rarely make it larger.
BY AT LEAST: The whole interval is at or beyond `smallest`, so even the end closest to 0 is a difference worth
  having. BETTER or WORSE without these words means only that there is a difference, not that it is this large.
AS TUNED: Each arm has the settings that its own trials chose, with as many trials for every arm, on data and seeds
  that the verdict does not use. The verdict is about the arms as tuned by so many trials; with more of them, an arm
  that is harder to tune may catch up.
SHRINKS WITH SIZE: The difference to the baseline moves towards 0 as the model grows: the interval of its slope per
  doubling of the parameters excludes 0, against the side on which the difference is. In larger models than those of
  the study there may be none, and a line through few sizes does not show where.
GROWS WITH SIZE: The difference to the baseline moves away from 0 as the model grows, on the side that it has at the
  largest size. That side may be the bad one.
NO TREND WORTH HAVING: The whole interval of the slope is closer to 0 than the smallest slope that matters, so the
  difference is much the same at all sizes. Unlike TREND INCONCLUSIVE this is a result, for the range of sizes that
  was trained.
TREND INCONCLUSIVE: The interval of the slope contains 0 and also slopes worth having, or it is not known on which
  side of 0 the difference is. More seeds at the smallest and the largest size or horizon narrow it most.
GAP CLOSING: The difference to the baseline moves towards 0 with longer training: the interval of its slope per
  doubling of the steps excludes 0, against the side on which the difference is. The arm that is behind may only
  learn more slowly, and catch up with more steps than the study has.
GAP OPENING: The difference to the baseline moves away from 0 with longer training, on the side that it has at the
  longest horizon. Runs that are shorter than those of the study would show less of it, or none.
GAP STEADY: The whole interval of the slope per doubling of the steps is closer to 0 than the smallest slope that
  matters. Within these horizons the difference does not depend on the length of training.
BETTER OVERALL: The mean over tasks of difference/smallest has an interval entirely on the good side of 0, and no
  task is WORSE by its own verdict. It is about these tasks in the mean, and a note says if one of them alone
  decides.
WORSE OVERALL: The mean over tasks of difference/smallest has an interval entirely on the bad side of 0, and no task
  is BETTER by its own verdict. It is about these tasks in the mean, and a note says if one of them alone decides.
MIXED: By their own verdicts, so many tasks are better and so many are worse, or one is opposed to the mean of all.
  One answer for all of them would hide that, so none is given.
AT EQUAL: The arms were made equal before training in what follows these words: operations or seconds of training
  (by their numbers of steps), parameters (by the width of the feed-forward layers), or the numbers that decoding
  keeps (state). A verdict at equal steps may change at equal cost, and the notes say what each arm has.
BETTER: The interval is entirely on the good side of 0, so the variant would very likely win again with other seeds
  (and with other examples, if scores of examples were given). The interval shows how much better it may be, which
  can be less than `smallest`.
WORSE: The interval is entirely on the bad side of 0, so the variant would very likely lose again with other seeds.
  This verdict is also given if a test that counts every failed run as the worst result finds the variant worse.
AT SHARED SETTINGS: All arms were trained with the same settings, such as one learning rate, and none was tuned.
  The verdict is about these settings only: an arm whose best settings are elsewhere may win or lose by that alone,
  which `[search]` rules out.
NO MEANINGFUL DIFFERENCE: The whole interval is closer to 0 than `smallest`, in both directions. Unlike INCONCLUSIVE
  this is a result: if there is a difference, it is too small to be worth having.
TARGET INCONCLUSIVE: The interval of the arm's last figures contains the target, so these seeds do not say whether
  the arm reaches it on average. More seeds or longer training would tell.
INCONCLUSIVE: The interval contains 0 and also differences worth having, so these seeds do not answer the question.
  The number in parentheses is how many more seeds per arm would answer it with 80 % power if the difference stays
  as it is, and ∞ if more seeds cannot help because there are too few examples.
TOO FEW SEEDS: An arm has fewer than 5 seeds with a score, or fewer than 3 at some size of a trend, which is too few
  to estimate how much seeds vary. No other verdict is given, however large the difference is.
NEITHER LEARNED THE TASK: No arm's 95 % interval over its seeds is beyond the score of a trivial strategy, such as
  always giving the most common answer. If neither model has learned the task, a difference between them says
  nothing about their mechanisms, so the verdict does not name a winner.
BOTH AT CEILING: Both arms are within `smallest` of the best possible score, or perfect in every seed, and no
  difference was found. The task is too easy to compare them, so use a harder one.
DEGENERATE: The differences do not vary at all over seeds, so no interval can be computed. The usual causes are
  copied runs, or a variant that was not installed in the model.
REACHES: The interval of the arm's last figures over seeds is entirely on the good side of the target, so their
  mean would very likely reach it again with other seeds, on the same evaluation examples. Single runs may still
  miss it; the table counts those that reach it during training.
DOES NOT REACH: The interval of the arm's last figures over seeds is entirely on the bad side of the target. The
  arm would very likely miss it again with other seeds, on the same evaluation examples and after as much training.
LESS STABLE: The variant's scores vary more over seeds than the baseline's, or more of its runs fail. This is tested
  from 8 seeds per arm on and printed beside the verdict.
MORE STABLE: The variant's scores vary less over seeds than the baseline's, or fewer of its runs fail. This is
  tested from 8 seeds per arm on and printed beside the verdict.
STABILITY UNKNOWN: There are too few seeds to test how much the scores vary, or the test found no difference. It
  does not mean that the arms are equally stable.
CHANGED AFTER LOOKING: After a verdict had been printed, something that decides verdicts was changed; the change is
  in parentheses. Changes made after seeing results can produce a difference by chance, so treat the verdict as
  exploratory.
UNDECLARED LOOK: A verdict had been printed before, and seeds were added without declaring it beforehand; the number
  counts the looks. A new test at every look gives too many false positives (18.5 % after each of 5 to 20 seeds), so
  this verdict uses the e-process, a test that stays valid for any number of looks.
COLLAPSED: One run predicts a single class for every example, so its accuracy is that of always giving this answer.
  It is printed with the evaluation of that run, and a comparison with such runs says little about a mechanism.
FAULT: An integrity check found something that makes results wrong or incomparable, such as copied values or a leak; the
  exit status is then 1. A finding that is marked as a note is only worth knowing.
AS REGISTERED: Arms, seeds, looks, `smallest` and the family of comparisons are those that were fixed before the
  first verdict. The false-positive rate is therefore the stated one.
"""
MEANINGS: Mapping[str, str] = dict(
    " ".join(entry.split()).split(": ", 1) for entry in re.split(r"\n(?! )", _GLOSSARY.strip())
)
"""Every word. Of several in one verdict, the first in this order is the one that is explained."""


_FORMS = {"INCONCLUSIVE": ("The number in parentheses ", r"(?<!TREND )(?<!TARGET )INCONCLUSIVE \((about|∞)")}
"""Sentences of a meaning that hold for one form of its word only: how they begin, and the form."""
_LONGEST_FIRST = re.compile("|".join(rf"\b{word}\b" for word in sorted(MEANINGS, key=len, reverse=True)))


def list_meanings(phrases: Iterable[str]) -> dict[str, str]:
    """Return the words that occur in phrases, each with its meaning in the forms that occur."""
    given = list(phrases)
    words = {word for phrase in given for word in _LONGEST_FIRST.findall(_cut_reason(phrase))}
    return {word: _explain(word, given) for word in MEANINGS if word in words}


def _explain(word: str, phrases: Iterable[str]) -> str:
    start, form = _FORMS.get(word, ("", ""))
    if not start or any(re.search(form, phrase) for phrase in phrases):
        return MEANINGS[word]
    return " ".join(part for part in re.split(r"(?<=\.) (?=[A-Z])", MEANINGS[word]) if not part.startswith(start))


def find_word(words: str) -> str:
    """Return the word of a verdict that most needs an explanation, a key of MEANINGS."""
    phrase = _cut_reason(words)
    for word in MEANINGS:
        if word in phrase:
            return word
    raise StatisticsError(f"'{words}' is not a verdict; docs/statistics.md lists the words of every verdict")


def _cut_reason(phrase: str) -> str:
    """Remove what stands in parentheses: a number or a reason, which may be any text."""
    return re.sub(r" \(\d+ trials\)", "", phrase).partition("(")[0]


def verdict_anchor(words: str) -> str:
    """Return the anchor in docs/statistics.md, and in a report, that explains a verdict: 'better' for BETTER."""
    return find_word(words).lower().replace(" ", "-")
