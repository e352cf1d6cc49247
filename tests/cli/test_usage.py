"""The mistakes of a first hour: each is one clear sentence with status 2, and nothing is printed or written."""

from pathlib import Path

import pytest

from attnlab.cli import main

MISTAKES = [
    ("explain dot --length abc", "--length takes a whole number, not 'abc'"),
    ("explain dot --length 0", "--length takes a number of at least 1, not '0'"),
    ("explain dot --lenght 5", "attnlab explain has no option --lenght, did you mean '--length'?"),
    ("explain", "attnlab explain needs MECHANISM…, which is missing\nFor example: attnlab explain"),
    ("audit dot --xyz 1", "attnlab audit has no option --xyz.\n"),
    ("audit dott", "did you mean 'dot'?"),
    ("audit --model ./nowhere", "there is no folder './nowhere'"),
    ("bench dot --batch none", "--batch takes a whole number, not 'none'"),
    ("new dot|relu --smallest x", "--smallest takes a number, not 'x'"),
    ("new dot|relu --task txt", "--task takes text, recall or both, not 'txt'"),
    ("new dot|relu --text nope.txt", "there is no nope.txt; the current folder holds table.csv"),
    ("mechanisms dott", "attnlab mechanisms takes options only; 'dott' is too much"),
    ("construct selekt", "did you mean 'select'?"),
    ("construct select", "select needs --index; for example"),
    ("recipes copy quickstrt", "did you mean 'quickstart'?"),
    ("register", "attnlab register needs RECIPE|FILE, which is missing\nFor example: attnlab register study.toml"),
    ("run quickstrt", "did you mean 'quickstart'?"),
    ("run study.tml", "cannot read the study file study.tml: No such file or directory; the current folder holds"),
    ("run quickstart --out table.csv --dry-run", "table.csv is a file, and a study needs a folder"),
    ("run quickstart --out table.csv", "table.csv is a file, and a study needs a folder"),
    ("run quickstart --workers 0", "--workers takes a number of at least 1, not '0'"),
    ("run quickstart --set phases.x.clip=3 --dry-run", "there is no 'phases.x'; 'phases' has"),
    ("train", "--out DIR is missing"),
    ("train squd", "there is no task 'squd', did you mean 'squad'?"),
    ("train squd --out run", "there is no task 'squd', did you mean 'squad'?"),
    ("data hf:", "'hf:' lacks the name of a dataset"),
    ("data embedded:pydco", "did you mean 'pydoc'?"),
    ("score squd", "there is no task 'squd', did you mean 'squad'?"),
    ("score squad a b", "attnlab score takes TASK and GLUE_TASK; 'b' is too much"),
    ("inspect nowhere", "attnlab inspect needs --text, which is missing\nFor example: attnlab inspect"),
    ("judge tabel.csv", "did you mean 'table.csv'?"),
    ("judge table.csv --baseline Basline", "did you mean 'baseline'?"),
    ("plan nope.toml", "cannot read the study file nope.toml"),
    ("compare nowhere", "nowhere is no folder"),
    ("report nowhere", "nowhere is no folder"),
    ("watch nowhere", "nowhere is no folder"),
    ("generate nowhere", "nowhere is not a folder"),
    ("generate nowhere --prompt", "--prompt needs a value behind it"),
    ("generate nowhere --checkpoint bst", "--checkpoint takes last or best, not 'bst'"),
    ("export nowhere", "--out DIR is missing"),
    ("doctor extra", "attnlab doctor takes options only; 'extra' is too much"),
    ("demo --lnog", "attnlab demo has no option --lnog, did you mean '--long'?"),
    ("judg table.csv", "Did you mean 'judge'?"),
]


@pytest.mark.parametrize(("command", "message"), MISTAKES, ids=[command for command, _ in MISTAKES])
def test_a_mistake_is_one_sentence(
    command: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("table.csv").write_text("method,acc\nbaseline,1\nours,2\n", encoding="utf-8")
    assert main(command.split()) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith("attnlab: ")
    assert message in shown.err
    assert not shown.out
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]
