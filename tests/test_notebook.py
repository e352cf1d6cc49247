"""Results show themselves: a short line in a console, escaped HTML in a notebook, one display for a progress bar."""

import dataclasses
import io
import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest

import attnlab
from attnlab import charts, construct
from attnlab.charts.chart import MIME
from attnlab.notebook import Facts, NotebookBar, Showable, in_notebook, is_terminal, write_html
from attnlab.studies import Answer, Conclusion, Study
from attnlab.training import Evaluation, Result, RunSpec, Start
from attnlab.visible import make_visible

from .conftest import NotebookKernel

HOSTILE = "<script>alert('x')</script> & \"quoted\""
HIDDEN = "a\x1b[31m\u202eb\x9bc\u2066\x00"
COMPARISON = attnlab.compare([71.2, 70.8, 71.9, 70.1, 71.5], [72.0, 71.1, 72.8, 71.0, 72.1], smallest=0.5)
ANSWER = Answer("text", "small", "cosine", "perplexity", "INCONCLUSIVE", COMPARISON)
EVALUATION = Evaluation(20, "perplexity", {"perplexity": 12.5})
STUDY = Study.of({
    "name": "tiny", "question": HOSTILE, "baseline": "plain", "seeds": [1, 2],
    "arms": {"plain": "dot | softmax", "other": "cosine | softmax"}, "sizes": {"small": {"architecture": "gpt2"}},
    "data": {"recall": {"train": "embedded:mqar"}},
    "phases": [{"name": "recall", "task": "mqar", "data": "recall", "segments": [{"steps": 2, "batch": 2}]}],
})  # fmt: skip

OBJECTS: dict[str, tuple[Showable, str]] = {
    "Mechanism": (attnlab.Mechanism.parse("additive | softmax | bypass(alpha=0.5)"), "bypass(alpha=0.5)"),
    "Explanation": (attnlab.explain("additive | softmax", length=64), "operations forward"),
    "Audit": (attnlab.audit("dot | softmax | mask(after)", causal=True, checks=["leak"]), "FAILED"),
    "Focus": (construct.select(construct.EXAMPLE_KEYS, 0), "strength 8.64"),
    "Selections": (construct.select_all(construct.EXAMPLE_KEYS), "4 keys"),
    "Strength": (construct.strength(10, 64, 0.45), "S = 28.67"),
    "ArgmaxResult": (construct.argmax(construct.EXAMPLE_KEYS, [6, 1, 0]), "value of k1"),
    "Extraction": (construct.extract([[1], [0]], [[0], [1]]), "recovers v_a"),
    "Placement": (construct.place_key(construct.EXAMPLE_KEYS, [4, 5, 0]), "key"),
    "Comparison": (COMPARISON, "72.8"),
    "Result": (Result("finished", 20, 20, 1.5, EVALUATION, parameters={"trained": 1200}), "1,200"),
    "RunSpec": (RunSpec(task="mqar", start=Start(architecture="gpt2"), segments=[{"steps": 2, "batch": 2}]), "gpt2"),
    "Study": (STUDY, "cosine | softmax"),
    "Answer": (ANSWER, "INCONCLUSIVE"),
    "Conclusion": (Conclusion([ANSWER], 4, 4, {"recall, seed 1": HOSTILE}), "cosine, text, small"),
}  # fmt: skip


class Tags(HTMLParser):
    """The tags of a text, and whether each is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.opened: list[str] = []
        self.seen: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: Any) -> None:
        self.seen.add(tag)
        if tag != "img":
            self.opened.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.opened.pop() == tag


@pytest.mark.parametrize("name", OBJECTS)
def test_an_object_shows_a_line_and_a_small_page(name: str) -> None:
    shown, words = OBJECTS[name]
    assert type(shown).__name__ == name
    assert len(repr(shown)) < 300
    assert "\n" not in repr(shown)
    page = shown._repr_html_()
    text = re.sub(r"<[^>]+>", " ", page)
    assert words in text
    assert len(page) < 100_000
    tags = Tags(page)
    assert tags.seen <= {"div", "b", "table", "tr", "th", "td", "img"}
    assert tags.opened == []


def test_a_mechanism_can_be_read_back_from_its_repr() -> None:
    mechanism = attnlab.Mechanism.parse("cosine | relu(divide=n)")
    assert eval(repr(mechanism), {"Mechanism": attnlab.Mechanism}) == mechanism


def test_a_strength_stays_a_number_and_is_not_laid_out_where_it_is_large() -> None:
    assert repr(construct.strength(10, 64, 0.45)) == "28.66815150764888"
    assert "<img" not in construct.strength(10**6, 64, 0.45)._repr_html_()


def test_text_of_others_is_escaped() -> None:
    page = write_html(Facts(HOSTILE, HOSTILE, (HOSTILE,), [(HOSTILE,)]))
    assert "<script" not in page
    assert page.count("&lt;script&gt;") == 4


def list_showable(known: type[Showable] = Showable) -> list[type[Showable]]:
    """List every class whose objects show themselves."""
    return [other for each in known.__subclasses__() for other in (each, *list_showable(each))]


def test_no_object_shows_itself_without_making_its_text_visible() -> None:
    """Every text passes through `write_html` and the one `__repr__`; three classes with a text of their own have
    none of others in it: the line of a mechanism, by layer or not, which its grammar restricts, and a number."""
    shown = [each for each in list_showable() if each.__module__.startswith("attnlab.")]
    assert len(shown) >= 12
    assert all(each._repr_html_ is Showable._repr_html_ for each in shown)
    own = {each.__name__ for each in shown if each.__repr__ is not Showable.__repr__}
    assert own <= {"LayeredMechanism", "Mechanism", "Strength"}


@pytest.mark.parametrize("shown", [
    Answer(HIDDEN, HIDDEN, HIDDEN, HIDDEN, HIDDEN, None, (HIDDEN,)),
    Conclusion([], 4, 4, {HIDDEN: HIDDEN}),
    Result(HIDDEN, 20, 20, 1.5, Evaluation(20, HIDDEN, {HIDDEN: 1.0}, HIDDEN), parameters={HIDDEN: 1}),  # type: ignore[arg-type]
    dataclasses.replace(STUDY, design=STUDY.design.model_copy(update={"name": HIDDEN, "question": HIDDEN})),
], ids=lambda shown: type(shown).__name__)  # fmt: skip
def test_hidden_characters_of_others_are_shown_as_escapes(shown: Showable) -> None:
    for text in (shown._repr_html_(), repr(shown)):
        assert make_visible(text) == text
    assert "\\u202e" in shown._repr_html_()


def test_hidden_characters_of_facts_bars_and_charts_are_shown_as_escapes() -> None:
    page = write_html(Facts(HIDDEN, HIDDEN, (HIDDEN,), [(HIDDEN,), (HIDDEN,)]))
    assert make_visible(page) == page
    assert page.count("\\u202e") == 5
    chart = charts.Chart({"title": HIDDEN, "data": {"values": [{HIDDEN: HIDDEN}]}, "mark": "point"})
    bundle = chart._repr_mimebundle_()
    for text in (json.dumps(bundle[MIME], ensure_ascii=False), bundle["image/svg+xml"], bundle["text/plain"]):
        assert make_visible(text) == text


def test_a_long_table_is_cut_and_says_so() -> None:
    assert "… and 60 more" in write_html(Facts("", rows=[(number,) for number in range(100)]))


def test_a_figure_is_vega_lite_and_svg_and_never_a_page_of_data() -> None:
    figure = construct.select(construct.EXAMPLE_KEYS, 0).figure()
    assert isinstance(figure, charts.Chart)
    bundle = figure._repr_mimebundle_()
    assert json.loads(json.dumps(bundle["application/vnd.vegalite.v6+json"])) == json.loads(json.dumps(figure))
    assert bundle["image/svg+xml"].startswith("<svg")
    assert bundle["text/plain"] == repr(figure) == "<Chart 'Selecting k0'; .save(path) writes it to a file>"


def test_a_test_runs_in_no_notebook() -> None:
    assert not in_notebook()


def test_a_bar_is_one_display_that_is_replaced(notebook_kernel: NotebookKernel) -> None:
    assert in_notebook()
    bar = NotebookBar()
    for step in range(5):
        bar.update(step / 5, f"step {step} <b>")
    bar.close("done")
    assert notebook_kernel.displays == ['<div style="white-space:pre-wrap">done</div>']
    assert notebook_kernel.num_updates == 5


def test_the_terminal_of_a_notebooks_command_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.delenv("JPY_PARENT_PID", raising=False)
    assert is_terminal(stream)
    monkeypatch.setenv("JPY_PARENT_PID", "1")
    assert not is_terminal(stream)
