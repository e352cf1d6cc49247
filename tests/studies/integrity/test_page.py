"""The files of docs/tables.md are read as the page says, by the commands that it shows."""

import re
import shlex
from pathlib import Path

import pytest

from attnlab.cli import main

PAGE = (Path(__file__).parents[3] / "docs" / "tables.md").read_text(encoding="utf-8")
FILES = re.findall(r"^`([\w./-]+)`\n\n```(?:csv|tex|json|markdown)\n(.*?)^```", PAGE, re.M | re.S)
COMMANDS = [line for block in re.findall(r"^```sh\n(.*?)^```", PAGE, re.M | re.S) for line in block.splitlines()]
SHOWN = re.findall(r"^```text\n(.*?)^```", PAGE, re.M | re.S)


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return {}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_reads_what_the_page_shows(
    command: str, printed: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    for name, text in FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(command, comments=True)[1:]) in (0, 1), capsys.readouterr().err
    printed[command] = " ".join(capsys.readouterr().out.split())
    assert printed[command]


def test_what_the_page_shows_is_printed(printed: dict[str, str]) -> None:
    assert len(FILES) >= 10
    for text in SHOWN if len(printed) == len(COMMANDS) else ():
        assert any(" ".join(text.split()) in output for output in printed.values()), text
