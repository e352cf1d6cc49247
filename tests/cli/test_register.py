"""`attnlab register` declares a study before it runs, for people and for programs."""

import json
from pathlib import Path

import pytest

from attnlab.cli import main


def test_a_declaration_is_written_once_and_has_a_digest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = ["--out", str(tmp_path / "study")]
    assert main(["register", "quickstart", "--budget", "smoke", *out, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["folder"] == out[1]
    assert record["baseline"] in record["arms"]
    assert main(["register", "quickstart", "--budget", "smoke", *out]) == 0
    shown = capsys.readouterr().out
    assert f"registered in {out[1]} as {record['digest']}" in shown
    assert f"run the study with --out {out[1]}" in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [(["quikstart"], "did you mean 'quickstart'"), (["quickstart", "--budget", "tiny"], "has no budget 'tiny'")],
)
def test_a_wrong_request_is_status_2(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["register", *words, "--out", str(tmp_path / "study")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "study").exists()
