"""The mistakes of a study file: all at once, with line and closest match."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnlab.studies.file.mistakes import Origin, index_lines

from ..samples import STUDY
from .refusals import line_with, refusal


def test_every_mistake_is_said_at_once_with_its_line_and_the_closest_match(file: Path) -> None:
    text = STUDY.replace("lr = 3e-3", 'lr = "fast"\nmomentun = 0.9').replace("seeds = [1, 2]", "seeds = [1, 1.5]")
    text = text.replace('baseline = "dot"', 'baseline = "dott"').replace("softmax | bypass", "softmx | bypass")
    text = text.replace("architecture", 'checkpoint = "x"\narchitecture').replace("batch = 8", "batch = 0")
    said = refusal(file, text)
    for part, message in (
        ('lr = "fast"', "'phases.0.optimizer.lr': should be a valid number, not 'fast'"),
        ("momentun", "there is no 'phases.0.optimizer.momentun', did you mean 'momentum'? The settings are"),
        ("1.5", "'seeds.1': should be a valid integer, not 1.5"),
        ("dott", "no arm is called 'dott', did you mean 'dot'? The arms are dot, bypass, slow"),
        ("softmx", "'arms.bypass.mechanism': unknown stage 'softmx', did you mean 'softmax'?"),
        ("[sizes.tiny]", "'sizes.tiny': give architecture (a model type, such as gpt2) or checkpoint, one of the two"),
        ("batch = 0", "'phases.0.segments.0.batch': should be greater than or equal to 1, not 0"),
    ):
        assert f"{file}, line {line_with(text, part)}: {message}" in said
    assert said.count("study.toml, line") == 7


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[arms]", "[arms]\nmechanism = { mechanism = 'dot | softmax', st = 1 }", "did you mean 'set'? The settings"),
        ("[arms]", "[arms]\n'a b' = 'dot | softmax'", "'arms.a b': give a name of letters, digits and . _ + -"),
        ('"optimizer.lr" = 1e-3', '"optimizer.lr" = "x"', "cannot have this value of 'optimizer.lr': should be"),
        ("seeds = [1, 2]", "seeds = []", "'seeds': list should have at least 1 item"),
        ("seeds = [1, 2]", "seeds = [1]\nlooks = [5, 4]", "looks are increasing numbers of seeds"),
        ("n_layer = 1", "n_layer = nan", "'sizes.tiny.config.n_layer': give a text, a finite number"),
        ("n_layer = 1", "n_layer = 1979-05-27", "'sizes.tiny.config.n_layer': give a text, a finite number"),
        ("[[phases]]", "[[stages]]", "'stages' is now called 'phases': a study has [[phases]], and a phase [[phases.s"),
        ("[[phases.segments]]", "[[phases.phases]]", "'phases.0.phases' is now called 'segments'"),
        ("steps = 4", "steps = 4\nepochs = 1", "give steps or epochs, one of the two"),
        ("steps = 4", f"steps = 0x{'f' * 5000}", "'phases.0.segments.0.steps': should be less than or equal to"),
        ("[arms]", "[[arms]]", "'arms': should be a valid dictionary"),
        ("[budgets.smoke]", "[budgets]\nlarge = 3\n[budgets.smoke]", "the budget 'large' must be a table, not a num"),
        ("name = ", "name = 'x'\nname = ", "'name' is there a second time; give one"),
        ("[arms]", "[arms]\ndot = 'dot | relu'", "'dot' is there a second time; give one of the two another name"),
        (
            "[arms]",
            "[search]\nrepeet = 'once'\n[arms]",
            "'search.repeet', did you mean 'repeat'? The",
        ),
        ('train = "', 'is_packed = true\nnum_tune = 4\ntrain = "', "write is_packed = false, so that every line"),
        ("[data.recall]", "[arms]\n[data.recall]", "'arms' is there a second time"),
    ],
)
def test_a_mistake_is_said_in_the_files_words(old: str, new: str, message: str, file: Path) -> None:
    said = refusal(file, STUDY.replace(old, new, 1))
    assert message in said
    assert said.startswith(str(file))
    assert len(said.splitlines()) < 5


def test_the_line_of_a_value_is_that_of_its_key_or_of_the_table_around_it() -> None:
    lines = index_lines('a = 1\n[[t]]\nb = 2\n[[t]]\n"c.d" = 3\n[t.e]  # a comment\nf.g = 4\n')
    assert lines["a",] == 1
    assert (lines["t", "0", "b"], lines["t", "1", "c.d"], lines["t", "1", "e", "f", "g"]) == (3, 5, 7)
    origin = Origin("file", lines, {("t", "0"): "--set t.0"})
    assert origin.describe(("t", 1, "e", "unknown")) == "file, line 6"
    assert origin.describe(("t", 0, "b")) == "--set t.0"
    assert origin.describe(("other",)) == "file"
