"""Every word of a verdict has a heading in docs/statistics.md, two sentences, and an anchor that leads there."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from attnlab.errors import StatisticsError
from attnlab.statistics import stability, verdict, verdict_anchor
from attnlab.statistics.glossary import MEANINGS, list_meanings

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "statistics.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^### (.+)\n\n((?:.+\n)+)", PAGE, flags=re.MULTILINE))


ROOMS = ("statistics", "studies", "tasks", "training", "reports")
WORDS = re.compile(r"(?<![\w./=$-])[A-Z]{2,}(?: [A-Z]{2,})+(?![\w./=-])|^[A-Z]{5,}(?=$|:| \()")
"""Words in capitals: several, or one that opens a text."""
NOT_VERDICTS = {"TOO OFTEN", "ABCDABCEEABCDDABCEAB"}
"""Of the self-test's table, and letters of colours."""


def list_words() -> Iterator[tuple[str, str]]:
    """Yield every phrase in capitals that the code may print, with its file; SQL and exported names are none."""
    for room in ROOMS:
        for file in (ROOT / "src" / "attnlab" / room).rglob("*.py"):
            if file.parent.name == "ledger" or file.name in ("__init__.py", "ledger_damage.py"):
                continue
            tree = ast.parse(file.read_text(encoding="utf-8"))
            docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
            for node in ast.walk(tree):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                    yield from ((word, file.name) for word in WORDS.findall(node.value))


def slug(heading: str) -> str:
    """Make an anchor as GitHub does."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_the_headings_are_those_of_the_page() -> None:
    assert set(SECTIONS) == set(MEANINGS)


def test_every_word_in_code_is_explained_on_the_page() -> None:
    words = dict(list_words())
    assert {"COLLAPSED", "NO MEANINGFUL DIFFERENCE", "UNDECLARED LOOK"} <= set(words)
    assert {word: file for word, file in words.items() if word not in PAGE and word not in NOT_VERDICTS} == {}


@pytest.mark.parametrize("heading", MEANINGS)
def test_two_sentences_explain_each(heading: str) -> None:
    text = SECTIONS[heading].replace("\n", " ").strip()
    sentences = [part for part in re.split(r"(?<=[.?])\s+(?=[A-Z])", text) if part]
    assert len(sentences) == 2, sentences
    assert text == MEANINGS[heading]
    assert verdict_anchor(heading) == slug(heading)


@pytest.mark.parametrize(
    ("words", "anchor"),
    [
        (verdict.BETTER, "better"),
        (verdict.WORSE + verdict.AT_LEAST.format("1 %"), "by-at-least"),
        (verdict.WORSE + verdict.BELOW, "below-your-threshold"),
        ("BETTER BY AT LEAST 1 AMONG RUNS THAT FINISHED", "among-runs-that-finished"),
        (verdict.SAME, "no-meaningful-difference"),
        (verdict.SAME + verdict.FINISHED, "among-runs-that-finished"),
        (verdict.INCONCLUSIVE.format("∞"), "inconclusive"),
        (verdict.TOO_FEW, "too-few-seeds"),
        (verdict.NEITHER_LEARNED, "neither-learned-the-task"),
        (verdict.AT_CEILING, "both-at-ceiling"),
        (verdict.NOT_COMPARABLE.format("not BETTER, it leaks"), "not-comparable"),
        (verdict.DEGENERATE, "degenerate"),
        ("STILL TRAINING, BETTER SO FAR, BELOW YOUR THRESHOLD", "still-training"),
        (stability.LESS, "less-stable"),
        (stability.MORE, "more-stable"),
        (stability.UNKNOWN, "stability-unknown"),
        ("BETTER AT SHARED SETTINGS", "better"),
        ("WORSE AT EQUAL OPERATIONS, AT SHARED SETTINGS", "at-equal"),
        ("BETTER AT EQUAL SECONDS, AS TUNED (3 trials)", "as-tuned"),
        ("REACHES 3.2", "reaches"),
        ("DOES NOT REACH 3.2", "does-not-reach"),
        ("TARGET INCONCLUSIVE", "target-inconclusive"),
        ("AS REGISTERED", "as-registered"),
        ("CHANGED AFTER LOOKING (seeds 5 → 7)", "changed-after-looking"),
        ("UNDECLARED LOOK (2nd)", "undeclared-look"),
    ],
)
def test_words_lead_to_their_heading(words: str, anchor: str) -> None:
    assert verdict_anchor(words) == anchor
    assert anchor in {slug(heading) for heading in SECTIONS}


def test_only_the_forms_that_occur_are_explained() -> None:
    plain = list_meanings(["STILL TRAINING, INCONCLUSIVE SO FAR", "NOT COMPARABLE (BETTER is in this reason)"])
    assert list(plain) == ["NOT COMPARABLE", "STILL TRAINING", "INCONCLUSIVE"]
    assert plain["INCONCLUSIVE"].endswith("do not answer the question.")
    assert list_meanings(["INCONCLUSIVE (about 7 more seeds)"]) == {"INCONCLUSIVE": MEANINGS["INCONCLUSIVE"]}
    note = "to decide what is INCONCLUSIVE (1 of 2 comparisons): 9 seeds per arm"
    assert "in parentheses" not in list_meanings(["STILL TRAINING, INCONCLUSIVE SO FAR", note])["INCONCLUSIVE"]
    assert list(list_meanings(["TREND INCONCLUSIVE"])) == ["TREND INCONCLUSIVE"]


def test_other_words_are_refused() -> None:
    with pytest.raises(StatisticsError, match="is not a verdict"):
        verdict_anchor("promising")
