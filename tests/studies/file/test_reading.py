"""Study files: every mistake at once, with line and closest match; budgets, --set; and two thousand spoiled ones."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from attnlab.cli import main
from attnlab.errors import AttnlabError, StudyError
from attnlab.studies.file.design import Design
from attnlab.studies.file.reading import LARGEST, read_design
from attnlab.studies.plan.planning import plan
from attnlab.studies.study import Study

from ..samples import STUDY, content
from .fuzz import make

NUM_FILES = 2000
NUM_COMMANDS, NUM_PLANS = 25, 60


def line_with(text: str, part: str) -> int:
    """Return the number of the line that holds a text."""
    return next(number for number, line in enumerate(text.split("\n"), start=1) if part in line)


def refusal(file: Path, text: str, budget: str | None = None, assign: dict[str, Any] | None = None) -> str:
    """Return what is said of a file that is no study."""
    file.write_text(text, encoding="utf-8")
    with pytest.raises(StudyError) as caught:
        read_design(file, budget, assign)
    return str(caught.value)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    place = tmp_path / "study.toml"
    place.write_text(STUDY, encoding="utf-8")
    return place


def test_a_study_is_read(file: Path) -> None:
    study = read_design(file)
    assert study.seeds == [1, 2]
    assert study.arms["slow"].set == {"optimizer.lr": 1e-3}
    assert study.phases[0].segments[0].steps == 4


def test_every_mistake_is_said_at_once_with_its_line_and_the_closest_match(file: Path) -> None:
    text = STUDY.replace("lr = 3e-3", 'lr = "fast"\nmomentun = 0.9').replace("seeds = [1, 2]", "seeds = [1, 1.5]")
    text = text.replace('baseline = "dot"', 'baseline = "dott"').replace("softmax | bypass", "softmx | bypass")
    text = text.replace("architecture", 'checkpoint = "x"\narchitecture').replace("batch = 8", "batch = 0")
    said = refusal(file, text)
    for part, message in (
        ('lr = "fast"', "'phases.0.optimizer.lr': should be a valid number, not 'fast'"),
        ("momentun", "nothing is called 'phases.0.optimizer.momentun', did you mean 'momentum'? There is name, lr,"),
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
        ("[arms]", "[arms]\nmechanism = { mechanism = 'dot | softmax', st = 1 }", "did you mean 'set'? There is mec"),
        ("[arms]", "[arms]\n'a b' = 'dot | softmax'", "'arms.a b': give a name of letters, digits and . _ + -"),
        ('"optimizer.lr" = 1e-3', '"optimiser.lr" = 1', "cannot set 'optimiser.lr', did you mean 'optimizer'?"),
        ('"optimizer.lr" = 1e-3', '"optimizer.lr" = "x"', "cannot have 'optimizer.lr' so: should be a valid number"),
        ('"optimizer.lr" = 1e-3', '"phases.recal.clip" = 2.0', "no phase is called 'recal', did you mean 'recall'?"),
        ('"optimizer.lr" = 1e-3', '"phases.recall" = 2', "an arm cannot set 'phases.recall'"),
        ('"optimizer.lr" = 1e-3', 'after = "other"', "an arm cannot set 'after'"),
        ('"optimizer.lr" = 1e-3', "config = 3", "give a setting inside 'config', such as 'config.n_layer'"),
        ('"optimizer.lr" = 1e-3', '"phases.recall.config.n_layer" = 3', "all phases have the same model"),
        ("seeds = [1, 2]", "seeds = [1, 2, 1]", "seed 1 stands twice"),
        ("seeds = [1, 2]", "seeds = []", "'seeds': list should have at least 1 item"),
        ("seeds = [1, 2]", "seeds = [1]\nlooks = [5, 4]", "looks are numbers of seeds that grow"),
        ("n_layer = 1", "n_layer = nan", "'sizes.tiny.config.n_layer': give a text, a finite number"),
        ("n_layer = 1", "n_layer = 1979-05-27", "'sizes.tiny.config.n_layer': give a text, a finite number"),
        ("[[phases]]", "[[stages]]", "'stages' is called 'phases' now: a study has [[phases]], and a phase [[phases.s"),
        ("[[phases.segments]]", "[[phases.phases]]", "'phases.0.phases' is called 'segments' now"),
        ("steps = 4", "steps = 4\nepochs = 1", "give steps or epochs, one of the two"),
        ("steps = 4", f"steps = 0x{'f' * 5000}", "'phases.0.segments.0.steps': should be less than or equal to"),
        ('data = "recall"', 'data = "recall"\nafter = "clm"', "no phase before this one is called 'clm'"),
        ("smallest = 0.02", "smallest = 0.02\nis_shared = true", "a phase that is shared has one seed"),
        ("[arms]", "[[arms]]", "'arms': should be a valid dictionary"),
        ("[budgets.smoke]", "[budgets]\nlarge = 3\n[budgets.smoke]", "the budget 'large' must be a table, not a num"),
        ("name = ", "name = 'x'\nname = ", "not TOML: Cannot overwrite a value"),
    ],
)
def test_a_mistake_is_said_in_the_files_words(old: str, new: str, message: str, file: Path) -> None:
    said = refusal(file, STUDY.replace(old, new, 1))
    assert message in said
    assert said.startswith(str(file))
    assert len(said.splitlines()) < 5


def test_a_phase_cannot_start_from_what_tuned_a_part_alone(file: Path) -> None:
    text = STUDY.replace("[phases.optimizer]", '[phases.tuning]\nmode = "lora"\n[phases.optimizer]')
    text += (
        '[[phases]]\nname = "next"\ntask = "mqar"\ndata = "recall"\nafter = "recall"\n[[phases.segments]]\nsteps = 1\n'
    )
    assert "'recall' tunes a 'lora' alone" in refusal(file, text.replace("[budgets", "[[phases]]\n[budgets", 0))


def test_budgets_are_sections_of_the_file(file: Path) -> None:
    assert read_design(file, "smoke").seeds == [1]
    assert read_design(file, "smoke").phases[0].segments[0].steps == 3
    paper = read_design(file, "paper")
    assert (paper.seeds, paper.phases[0].segments[0].steps, paper.phases[0].segments[0].batch) == (
        [1, 2, 3, 4, 5],
        9,
        8,
    )


def test_an_unknown_budget_is_refused(file: Path) -> None:
    assert "has no budget 'smok', did you mean 'smoke'? It has: smoke, paper" in refusal(file, STUDY, "smok")


def test_a_mistake_in_a_budget_is_found_before_it_is_needed_and_at_its_own_line(file: Path) -> None:
    text = STUDY.replace("seeds = [1, 2, 3, 4, 5]", 'seeds = ["x"]')
    assert f"line {line_with(text, 'seeds = [')}: " not in refusal(file, text)
    line = line_with(text, 'seeds = ["x"]')
    assert refusal(file, text) == (
        f"{file}, line {line}, budget 'paper': 'seeds.0': should be a valid integer, not 'x'"
    )


def test_settings_are_reached_by_their_paths(file: Path) -> None:
    assign = {"seeds": [7], "phases.recall.optimizer.lr": 0.1, "phases.0.clip": None, "sizes.0.5B.architecture": "bert"}
    found = read_design(file, None, {"phases.recall.optimizer.lr": 0.1, "phases.0.clip": None, "seeds": [7]})
    assert (found.seeds, found.phases[0].optimizer.lr, found.phases[0].clip) == ([7], 0.1, None)
    file.write_text(STUDY.replace("sizes.tiny", 'sizes."0.5B"'), encoding="utf-8")
    found = read_design(file, None, {**assign, "sizes.0.5B.config.n_layer": 3})
    assert found.sizes["0.5B"].architecture == "bert"
    assert found.sizes["0.5B"].config["n_layer"] == 3


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("phases.recal.clip", "--set: 'phases.recal.clip' leads nowhere: there is no 'phases.recal'"),
        ("phases.²", "leads nowhere"),
        ("phases.9.clip", "leads nowhere"),
        ("name.x", "leads nowhere"),
        (".".join("a" * 99), "deeper than any setting"),
        ("phases.recall.cilp", "--set phases.recall.cilp: nothing is called 'phases.0.cilp', did you mean 'clip'?"),
    ],
)
def test_a_path_that_leads_nowhere_is_refused(where: str, message: str, file: Path) -> None:
    assert message in refusal(file, STUDY, None, {where: 1})


def test_a_value_that_was_set_is_said_to_be_so(file: Path) -> None:
    assert refusal(file, STUDY, None, {"seeds": ["x"]}).startswith("--set seeds: 'seeds.0': should be a valid integer")


def test_a_study_of_plain_data_is_read_alike() -> None:
    assert Study.of(content()).design.seeds == [1, 2]
    with pytest.raises(StudyError, match="the study: 'name' is missing"):
        Study.of({})
    with pytest.raises(ValueError, match="no arm is called 'nobody'"):
        Design.model_validate({**content(), "baseline": "nobody"})


@pytest.mark.parametrize("name", ["missing.toml", ".", "\0", "x" * 300], ids=["missing", "folder", "NUL", "long"])
def test_what_is_no_file_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="cannot read the study file"):
        read_design(f"{tmp_path}/{name}")


def test_a_file_of_windows_is_read(file: Path) -> None:
    file.write_bytes(b"\xef\xbb\xbf" + STUDY.replace("\n", "\r\n").encode())
    assert read_design(file) == read_design(file, "smoke", {"seeds": [1, 2], "phases.recall.segments.0.steps": 4})


def test_spoiled_files_are_one_clear_error_or_a_study(tmp_path: Path) -> None:
    file, num_valid, refusals = tmp_path / "study.toml", 0, list[str]()
    for seed in range(NUM_FILES):
        file.write_bytes(make(seed))
        try:
            study = read_design(file)
        except StudyError as error:
            refusals.append(str(error))
            continue
        num_valid += 1
        if num_valid <= NUM_PLANS:
            with suppress(AttnlabError):  # such as a source that is not there
                plan(study)
    assert 100 < num_valid < NUM_FILES / 2
    assert all(said.startswith(str(file)) and len(said) < 20_000 for said in refusals)


def test_files_too_large_or_too_deep_are_refused_at_once(file: Path) -> None:
    assert "more than" in refusal(file, "#" * (LARGEST + 1))
    assert "dots" in refusal(file, "a." * 60_000 + "a = 1")
    assert "and 8987 more" in refusal(file, "".join(f"k{number} = 1\n" for number in range(9_001)))


def test_the_command_refuses_spoiled_files_and_leaves_no_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, num_refused = tmp_path / "study.toml", 0
    for seed in range(NUM_FILES, 2 * NUM_FILES):
        file.write_bytes(make(seed))
        try:
            read_design(file)
            continue
        except StudyError:
            num_refused += 1
        assert main(["run", str(file), "--out", str(tmp_path / "out")]) == 2
        shown = capsys.readouterr()
        assert shown.err.startswith("attnlab: ")
        assert "Traceback" not in shown.err + shown.out
        if num_refused == NUM_COMMANDS:
            break
    assert [path.name for path in tmp_path.iterdir()] == ["study.toml"]


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("phases.recall.task=mqarr", "phase 'recall', size 'tiny', arm 'dot': there is no task 'mqarr'"),
        ("phases.recall.task_settings.vocabb=3", "has no setting 'vocabb', did you mean 'vocab'?"),
        ("sizes.tiny.architecture=gtp2", "transformers has no architecture 'gtp2', did you mean"),
        ("sizes.tiny.config.n_layers=3", "the config of 'gpt2' has no setting 'n_layers', did you mean 'n_layer'?"),
        ("phases.recall.data=recal", "takes the data 'recal', did you mean 'recall'?"),
        ("data.recall.train=embedded:mqarr", "mqarr"),
        ("data.recall.train=/no/such/file.txt", "/no/such/file.txt"),
    ],
)
def test_a_study_that_no_run_could_begin_with_leaves_no_folder(
    assignment: str, message: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(file), "--out", str(file.parent / "out"), "--set", assignment]) == 2
    assert message in capsys.readouterr().err
    assert not (file.parent / "out").exists()
