"""A file of the user's own stages, named on the command line."""

import sys
from pathlib import Path

import pytest

from attnlab.cli import main
from attnlab.cli.options import takes_plugins
from attnlab.cli.verbs import VERBS

from ..studies.samples import STUDY

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
READ_LINES = {
    "mechanisms", "explain", "audit", "bench", "train", "new", "register", "run", "plan", "report", "generate",
    "inspect", "export",
}  # fmt: skip
"""The verbs that read a line, a study file or a model; the others read results, data, or what a study has recorded."""
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
        ("from attnlab import stage\n@stage('softmax')\nclass A: pass", "own.py, line 2: "),
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


RAISING = """
from dataclasses import dataclass
from attnlab import Parameter, Weights, stage
import own_helper

@stage("raising")
@dataclass(frozen=True)
class Raising(Weights):
    def __call__(self, scores, n, p):
        return scores
"""


@pytest.mark.parametrize(
    ("method", "says"),
    [
        ("def __post_init__(self): 1 / 0", "own.py, line 11: ZeroDivisionError: division by zero"),
        ("def __post_init__(self): raise SystemExit", "own.py, line 11: SystemExit"),
        ("def __post_init__(self): open('nowhere')", "own.py, line 11: FileNotFoundError"),
        ("def __post_init__(self): own_helper.fail()", "own_helper.py, line 2: LookupError: helpless"),
        ("def __post_init__(self): self.t = 1", "Raising sets self.t (in __post_init__, line 11 of own.py)"),
        ("def __init__(self): self.t = 1", "own.py, line 8: Raising defines __init__"),
        ("def parameters(self, dims): return {'t': Parameter((dims.none,), 1.0)}", "own.py, line 11: AttributeError"),
    ],
)
def test_what_the_code_of_a_stage_raises_is_not_called_a_bug_of_attnlab(
    method: str, says: str, own_stages: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_helper", raising=False)
    Path("own_helper.py").write_text("def fail():\n    raise LookupError('helpless')\n", encoding="utf-8")
    Path("own.py").write_text(f"{RAISING}    {method}\n", encoding="utf-8")
    assert main(["audit", "dot | raising", "--only", "weights", "--plugin", "own.py"]) == 2
    said = capsys.readouterr().err
    assert says in said
    assert "bug" not in said
    assert "Traceback" not in said


@pytest.mark.parametrize("line", ["dot | cubd", "cubd", "dot | cubde(divide=n)"])
def test_the_closest_match_of_a_misspelt_stage_may_be_of_the_plugin(
    line: str, own_stages: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "own.py"
    file.write_text(OWN, encoding="utf-8")
    assert main(["audit", line, "--plugin", str(file)]) == 2
    assert "did you mean 'cubed'?" in capsys.readouterr().err


def test_every_verb_that_reads_a_line_takes_plugins() -> None:
    assert {name for name, verb in VERBS.items() if takes_plugins(verb)} == READ_LINES


@pytest.mark.parametrize("words", [["plan", "--spread", "0.1"], ["plan"], ["register", "--out", "declared"]])
def test_a_study_file_with_a_stage_from_a_file_is_read(
    words: list[str], own_stages: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    Path("own.py").write_text(OWN, encoding="utf-8")
    Path("study.toml").write_text(STUDY.replace("bypass(alpha=0.5)", "bypass").replace("cosine | softmax", "cubed"))
    verb, *options = words
    assert main([verb, "study.toml", *options]) == 2
    assert "a stage of your own comes with --plugin FILE.py" in capsys.readouterr().err
    assert main([verb, "study.toml", *options, "--plugin", "own.py"]) == 0
    # What is printed to be typed next has the option too.
    printed = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  attnlab ")]
    assert len(printed) == (2 if words == ["plan"] else 0)
    assert all(line.endswith("--plugin own.py") for line in printed)
