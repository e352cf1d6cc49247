"""A file of the user's own stages, named on the command line."""

from pathlib import Path

import pytest

from attnlab.cli import main

OWN = """
from dataclasses import dataclass
import torch
from attnlab import Weights, stage

@stage("cubed")
@dataclass(frozen=True)
class Cubed(Weights):
    def __call__(self, scores, n, p):
        return torch.relu(scores) ** 3
"""
SMALL = ["--lengths", "16", "--heads", "1", "--head-dim", "4"]


def test_a_stage_from_a_file_is_measured_like_any_other(
    own_stages: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "own.py"
    file.write_text(OWN, encoding="utf-8")
    assert main(["bench", "dot | cubed(divide=n)", *SMALL, "--plugin", str(file)]) == 0
    assert "rowwise" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "there is none at"),
        ("import nothing_of_this_name", "line 1: ModuleNotFoundError"),
        ("x = 1\n1 / 0", "line 2: ZeroDivisionError"),
        ("def f(:", "SyntaxError"),
        ("from attnlab import stage\n@stage('softmax')\nclass A: pass", "own.py: "),
    ],
)
def test_a_file_that_does_not_work_is_one_clear_error(
    text: str | None, says: str, own_stages: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "own.py"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    assert main(["bench", "dot | softmax", *SMALL, "--plugin", str(file)]) == 2
    said = capsys.readouterr().err
    assert says in said
    assert "Traceback" not in said


@pytest.mark.parametrize("line", ["dot | cubd", "cubd", "dot | cubde(divide=n)"])
def test_the_closest_match_of_a_misspelt_stage_may_be_of_the_plugin(
    line: str, own_stages: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "own.py"
    file.write_text(OWN, encoding="utf-8")
    assert main(["audit", line, "--plugin", str(file)]) == 2
    assert "did you mean 'cubed'?" in capsys.readouterr().err
