"""Study files: every mistake at once, with line and closest match; budgets, --set; and two thousand spoiled ones."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from attnlab.cli import main
from attnlab.errors import AttnlabError, StudyError
from attnlab.studies.file.reading import LARGEST, read_design
from attnlab.studies.plan.planner import plan

from ..samples import STUDY
from .fuzz import make
from .refusals import line_with, refusal

NUM_FILES = 2000


NUM_COMMANDS, NUM_PLANS = 25, 60


def test_a_study_is_read(file: Path) -> None:
    study = read_design(file)
    assert study.seeds == [1, 2]
    assert study.arms["slow"].set == {"optimizer.lr": 1e-3}
    assert study.phases[0].segments[0].steps == 4


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


@pytest.mark.parametrize("name", ["missing.toml", ".", "\0", "x" * 300], ids=["missing", "folder", "NUL", "long"])
def test_what_is_no_file_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(AttnlabError, match=r"cannot read the study file|cannot be a path|cannot look up"):
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
