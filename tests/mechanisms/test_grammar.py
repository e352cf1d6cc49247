"""A wrong line is answered with the line itself, a mark under the spot, and the closest match."""

import re
import string
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlab.errors import MechanismError
from attnlab.mechanisms import CATALOG, REGISTRY, Mechanism
from attnlab.mechanisms.grammar import OTHER_NAMES

from .strategies import mechanisms

# The wrong stretch of each line stands between ⟦ and ⟧; the message is given in part.
WRONG = [
    # names
    ("⟦dott⟧ | softmax", "unknown stage 'dott', did you mean 'dot'?"),
    ("dot | ⟦sink⟧(4) | softmax", "unknown stage 'sink'; write softmax(sink=learned)"),
    (
        "dot | softmax | bypass(alpha=⟦learned⟧)",
        "bypass: alpha must be a number, not 'learned'; to learn it, write bypass(alpha=0.5, learn=true)",
    ),
    ("dot | ⟦sofmax⟧", "unknown stage 'sofmax', did you mean 'softmax'?"),
    ("dot | softmax | ⟦by-pass⟧(alpha=0.5)", "unknown stage 'by-pass', did you mean 'bypass'?"),
    ("⟦DOT⟧ | softmax", "unknown stage 'DOT', did you mean 'dot'?"),
    ("  ⟦cosin⟧(scale=learned)|softmax", "did you mean 'cosine'?"),
    ("⟦xyzzy⟧ | softmax", "unknown stage 'xyzzy'; the stages are additive, alibi, angle, argmax, bypass,"),
    ("⟦sofmax⟧", "no stage and no catalog entry is named 'sofmax', did you mean 'softmax'?"),
    ("⟦value_bypass⟧", "no stage and no catalog entry is named 'value_bypass', did you mean 'value-bypass'?"),
    ("⟦Baseline⟧", "did you mean 'baseline'?"),
    ("⟦xyzzy⟧", "no stage and no catalog entry is named 'xyzzy'; `attnlab mechanisms` lists the catalog"),
    ("⟦baseline⟧ | gate", "'baseline' is a catalog entry, not a stage; in a line, write its stages: dot |"),
    # arguments
    ("dot | softmax | bypass(⟦alfa⟧=0.5)", "bypass has no argument 'alfa', did you mean 'alpha'?"),
    ("dot | relu(⟦by⟧=n)", "relu has no argument 'by'; it takes divide, divide_at"),
    ("manhattan(⟦p⟧=1) | softmax", "manhattan has no argument 'p'; it takes none"),
    ("manhattan(⟦1⟧) | softmax", "manhattan takes no arguments"),
    ("euclidean(true, ⟦2⟧)", "euclidean takes 1 argument"),
    ("bypass(alpha=0.5, on=q, ⟦alpha⟧=1)", "bypass: alpha is given twice"),
    ("bypass(on=q, ⟦0.3⟧)", "bypass: a value after a named one needs a name"),
    # values
    ("dot | relu(divide=⟦m⟧)", "relu: divide must be 1, n, sqrt_n, learned or sum, not 'm'"),
    ("dot | relu(divide=⟦sqrt⟧)", "1, n, sqrt_n, learned or sum, not 'sqrt', did you mean 'sqrt_n'?"),
    ("dot | softmax | mask(⟦befor⟧)", "mask: where must be before, after or zero, not 'befor', did you"),
    ("dot | argmax(straight_through=⟦yes⟧)", "argmax: straight_through must be true or false, not 'yes'"),
    ("dot(scale=⟦big⟧)", "dot: scale must be a number or learned, not 'big'"),
    ("dot(scale=⟦1e999⟧)", "dot: scale must be a number or learned, not '1e999'"),
    ("dot(scale=⟦nan⟧)", "dot: scale must be a number or learned, not 'nan'"),
    ("additive(hidden=⟦1.5⟧)", "additive: hidden must be a whole number, not '1.5'"),
    ("additive(⟦hidden=0⟧)", "additive: hidden must be at least 1, not 0"),
    ("minkowski(⟦p=0.5⟧) | softmax", "minkowski: p must be at least 1, not 0.5"),
    ("shift(keys, ⟦share=1.5⟧)", "shift: share must be at most 1, not 1.5"),
    ("token_dropout(⟦1⟧)", "token_dropout: p must be below 1, not 1"),
    ("token_dropout(⟦-0.1⟧)", "token_dropout: p must be at least 0, not -0.1"),
    ("bypass(layers=⟦some⟧)", "bypass: layers must be layers like all, 0-3 or 0,2, not 'some'"),
    ("bypass(layers=⟦3-1⟧)", "bypass: layers must be layers like all, 0-3 or 0,2, not '3-1'"),
    ("bypass(layers=⟦0, 3-1⟧, on=q)", "not '0,3-1'"),
    ("bypass(layers=⟦٣⟧)", "not '٣'"),
    ("bypass(layers=0, ⟦2⟧=3)", "bypass has no argument '2'"),
    # one question answered twice
    ("dot | ⟦cosine⟧ | softmax", "two stages answer the same question (score): 'dot' and 'cosine'"),
    ("softmax | dot | ⟦softmax⟧(divide=n)", "the same question (weights): 'softmax' and 'softmax'"),
    ("mask(after) | ⟦mask⟧(zero)", "two stages answer the same question (causal)"),
    ("bypass(alpha=1) | gate | ⟦bypass⟧(alpha=2)", "'bypass' is there twice; a stage may act on"),
    ("bypass(on=q) | ⟦bypass⟧(1, q)", "'bypass_q' is there twice"),
    ("gate | ⟦gate⟧(per=head)", "'gate' is there twice"),
    # punctuation
    ("dot | softmax |⟦⟧", "the line ends where a stage was expected"),
    ("⟦|⟧ dot", "a stage is missing before '|'"),
    ("dot |⟦|⟧ softmax", "a stage is missing before '|'"),
    ("⟦(⟧dot)", "a stage is missing before '('"),
    ("dot ⟦softmax⟧", "expected '|' between stages, found 'softmax'"),
    ("dot ⟦｜⟧ softmax", "expected '|' between stages, found '｜'"),
    ("dot⟦)⟧ | softmax", "expected '|' between stages, found ')'"),
    ("dot(⟦⟧", "the line ends where ')' was expected"),
    ("dot(⟦scale⟧", "dot: scale must be a number or learned, not 'scale'"),
    ("dot(scale=⟦⟧", "the line ends where a value for scale was expected"),
    ("dot(scale=1⟦⟧", "the line ends where ',' or ')' was expected"),
    ("dot(scale=1⟦,⟧) | softmax", "an argument is missing after ','"),
    ("dot(scale=1 ⟦|⟧ softmax", "expected ',' or ')', found '|'"),
    ("dot(scale=⟦)⟧", "a value for scale is missing before ')'"),
    ("dot(⟦=⟧1)", "a value for scale is missing before '='"),
    ("bypass(0.5, on=q⟦⟧", "the line ends where ',' or ')' was expected"),
    ("bypass(on=q,⟦⟧", "the line ends where ')' was expected"),
    ("dot(scale=1 ⟦2⟧)", "expected ',' or ')', found '2'"),
    # other alphabets
    ("dot | ⟦софтмакс⟧", "unknown stage 'софтмакс'"),
    ("dot | softmax | bypass(alpha=⟦½⟧)", "bypass: alpha must be a number, not '½'"),
    ("⟦🙂⟧ | softmax", "unknown stage '🙂'"),
]  # fmt: skip


def error_of(line: Any) -> str:
    with pytest.raises(MechanismError) as caught:
        Mechanism.parse(line)
    return str(caught.value)


@pytest.mark.parametrize(("marked", "said"), WRONG)
def test_a_wrong_line_is_shown_and_marked(marked: str, said: str) -> None:
    start, end = marked.index("⟦"), marked.index("⟧") - 1
    line = marked.replace("⟦", "").replace("⟧", "")
    message, shown, mark = error_of(line).split("\n")
    assert said in message
    assert shown == "    " + line
    assert mark == "    " + " " * start + "^" * max(1, end - start)


@pytest.mark.parametrize("line", ["", " ", "\n", "\t \u2003"])
def test_an_empty_line_is_told_the_baseline(line: str) -> None:
    assert "an empty line is not a mechanism; the baseline is 'dot | softmax'" in error_of(line)


@pytest.mark.parametrize("thing", [None, 3, b"dot | softmax", ["dot", "softmax"], {"score": "dot"}])
def test_what_is_not_a_line_is_refused(thing: object) -> None:
    said = f"a mechanism is a line such as 'dot | softmax', not {type(thing).__name__}"
    assert error_of(thing) == said


def test_tabs_and_line_breaks_do_not_move_the_mark() -> None:
    shown, mark = error_of("\tdot\n\t| sofmax\r\n").split("\n")[1:]
    assert shown == "    dot | sofmax"
    assert mark == "          ^^^^^^"


@pytest.mark.parametrize(
    "line",
    ["x" * 100_000, "dot | " + "x" * 100_000, "dot | " * 10_000, "bypass | " * 10_000, "(" * 100_000,
     "dot(scale=" + "9" * 100_000 + ")", "additive(hidden=" + "9" * 5_000 + ")",
     "bypass(layers=" + "1," * 10_000 + ")", "bypass(layers=0-" + "9" * 5_000 + ")"],
    ids=lambda line: line[:20],
)  # fmt: skip
def test_a_very_long_line_is_refused(line: str) -> None:
    assert line.strip() in error_of(line)


@given(st.sampled_from(sorted(REGISTRY)), st.data())
def test_a_slip_of_one_letter_names_the_stage(name: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(name) - 1))
    wrong = name[:at] + data.draw(st.sampled_from(string.ascii_lowercase)) + name[at + 1 :]
    if len(name) < 5 or wrong in REGISTRY:
        return
    hint = re.search(r"did you mean '(\w+)'\?", error_of(f"{wrong} | {wrong}"))
    assert hint is not None
    # Two stages may be as near as each other (softmax, softmax1), so the hint is one of the nearest.
    assert sum(a != b for a, b in zip(hint[1], wrong, strict=False)) <= 1


@pytest.mark.parametrize("name", sorted(CATALOG))
def test_a_catalog_name_misspelt_is_found(name: str) -> None:
    assert f"did you mean '{name}'?" in error_of(name + "x") or name + "x" in CATALOG


def parses_or_says_why(line: str) -> None:
    try:
        mechanism = Mechanism.parse(line)
    except MechanismError:
        return
    assert Mechanism.parse(str(mechanism)) == mechanism


@settings(max_examples=300)
@given(st.text())
def test_any_text_parses_or_says_why(line: str) -> None:
    parses_or_says_why(line)


WORDS = st.sampled_from(
    [
        *sorted(REGISTRY),
        *sorted(CATALOG),
        "alpha",
        "divide",
        "p",
        "layers",
        "learned",
        "n",
        "true",
        "none",
        "all",
    ]
)
PIECES = WORDS | st.sampled_from(["|", "(", ")", ",", "=", " ", "0-3", "-", "1e999", "\t"]) | st.integers().map(str)


@settings(max_examples=500)
@given(st.lists(PIECES, max_size=15).map("".join))
def test_any_heap_of_pieces_parses_or_says_why(line: str) -> None:
    parses_or_says_why(line)


@settings(max_examples=300)
@given(mechanisms(), st.data())
def test_any_damaged_line_parses_or_says_why(mechanism: Mechanism, data: st.DataObject) -> None:
    line = str(mechanism)
    start = data.draw(st.integers(0, len(line)))
    end = data.draw(st.integers(start, min(len(line), start + 5)))
    parses_or_says_why(line[:start] + data.draw(st.text(max_size=3) | PIECES) + line[end:])


@pytest.mark.parametrize(("name", "written"), OTHER_NAMES.items())
def test_what_is_written_in_place_of_another_name_is_a_stage(name: str, written: str) -> None:
    assert name not in REGISTRY
    assert written in str(Mechanism.parse(f"dot | {written} | softmax" if written.startswith("cap") else written))
