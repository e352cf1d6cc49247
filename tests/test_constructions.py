"""docs/constructions.md says what the commands and the calls it shows print."""

import doctest
import re
import shlex
import shutil
from pathlib import Path

import pytest

from attnlab.cli import main

DOCS = Path(__file__).parent.parent / "docs"
PAGE = (DOCS / "constructions.md").read_text(encoding="utf-8")
SESSIONS = re.findall(r"^```console\n\$ attnlab (.*?)\n(.*?)^```", PAGE, re.M | re.S)


@pytest.mark.parametrize(("command", "shown"), SESSIONS, ids=[command for command, _ in SESSIONS])
def test_a_command_prints_what_the_page_shows(
    command: str, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for file in (DOCS / "constructions").glob("*.json"):
        shutil.copy(file, tmp_path)
    monkeypatch.chdir(tmp_path)
    main(shlex.split(command))
    printed = capsys.readouterr()
    assert printed.out + printed.err == shown


def test_the_python_of_the_page_gives_what_it_shows() -> None:
    code = re.sub(r"^```.*$", "", PAGE, flags=re.M)
    test = doctest.DocTestParser().get_doctest(code, {}, "constructions.md", None, 0)
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0


def test_each_picture_of_the_page_is_there_and_drawn_by_a_command() -> None:
    pictures = re.findall(r"!\[[^\]]+\]\(constructions/([^)]+)\)", PAGE)
    drawn = [name for command, _ in SESSIONS for name in re.findall(r"--figure (\S+)", command)]
    assert pictures == drawn
    assert all((DOCS / "constructions" / name).is_file() for name in pictures)
