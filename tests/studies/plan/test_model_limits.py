"""What does not fit into a model is refused before the first run."""

from pathlib import Path

import pytest

from attnlab.cli import main
from attnlab.errors import StudyError
from attnlab.studies.study import Study

LONG = "counterrevolutionaries electroencephalographically pneumonoultramicroscopic floccinaucinihilipilification"


@pytest.fixture
def study_file(tmp_path: Path) -> Path:
    text = tmp_path / "long.txt"
    text.write_text("\n".join(f"{LONG} w{number} and then it goes on" for number in range(200)), encoding="utf-8")
    assert main(["new", "cosine | softmax", "--text", str(text), "--out", str(tmp_path / "study.toml")]) == 0
    return tmp_path / "study.toml"


def test_the_prompts_that_new_chooses_fit(study_file: Path) -> None:
    Study.load(study_file).check_limits()


def test_a_prompt_that_does_not_fit_is_refused_before_a_run(
    study_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    setting = f"phases.text.prompts=['{LONG}']"
    for command in (["run", "--out", str(tmp_path / "out")], ["plan"]):
        assert main([command[0], str(study_file), *command[1:], "--set", setting]) == 2
        assert "num_tokens" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_packed_rows_that_do_not_fit_are_refused(study_file: Path) -> None:
    study = Study.load(study_file, assign={"phases.text.task_settings.max_len": 65})
    with pytest.raises(StudyError, match=r"a packed row has 65 tokens.*max_len = 64 or less"):
        study.check_limits()
