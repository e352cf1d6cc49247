"""`attnlab run`: wrong requests end before anything is trained."""

from pathlib import Path

import pytest

from attnlab.cli import main


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--no-calibration"], "--no-calibration is only for --dry-run"),
        (["--set", "seeds"], "--set takes name=value"),
        (["--data", "pydoc"], "--data takes name=value"),
        (["--plugin", "missing.py"], "there is none at 'missing.py'"),
        (["--budget", "tiny"], "has no budget 'tiny'"),
    ],
)
def test_a_wrong_request_is_status_2_and_leaves_no_folder(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "study"
    assert main(["run", "quickstart", "--out", str(out), *words]) == 2
    assert message in capsys.readouterr().err
    assert not out.exists()
