"""The code of the pages runs: Python blocks as they stand, and every `attnlab` command they show."""

import re
import shlex
from pathlib import Path

import pytest

from attnlab.cli import main

ROOT = Path(__file__).parent.parent
PAGES = ("README.md", "docs/audits.md")


def blocks(text: str, *languages: str) -> list[str]:
    """Take the fenced code blocks in any of the languages out of a page."""
    return [body for language, body in re.findall(r"^```(\w+)\n(.*?)^```", text, re.M | re.S) if language in languages]


def commands(text: str) -> list[list[str]]:
    """Take the attnlab commands, without prompt and comment, out of a page's shell blocks."""
    lines = "\n".join(blocks(text, "sh", "console")).splitlines()
    split = [shlex.split(line.removeprefix("$ "), comments=True) for line in lines]
    return [words[1:] for words in split if words[:1] == ["attnlab"]]


TEXTS = {name: (ROOT / name).read_text(encoding="utf-8") for name in PAGES}
BLOCKS = [
    pytest.param(code, id=f"{name} {number}")
    for name, text in TEXTS.items()
    for number, code in enumerate(blocks(text, "python"))
]


@pytest.mark.usefixtures("own_stages", "own_checks")
@pytest.mark.parametrize("code", BLOCKS)
def test_python_block_runs(code: str) -> None:
    exec(compile(code, "a block of a page", "exec"), {"__name__": "page"})


@pytest.mark.usefixtures("own_stages", "own_checks")
@pytest.mark.parametrize("arguments", [words for text in TEXTS.values() for words in commands(text)], ids=" ".join)
def test_command_runs(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 0, capsys.readouterr().err
    assert capsys.readouterr().out


@pytest.mark.parametrize("name", PAGES)
def test_a_page_shows_code_of_both_kinds(name: str) -> None:
    assert blocks(TEXTS[name], "python")
    assert commands(TEXTS[name])


@pytest.mark.parametrize("name", PAGES)
def test_what_a_page_shows_or_points_at_is_there(name: str) -> None:
    for target in re.findall(r"\]\(([^)#:]+)[)#]", TEXTS[name]):
        assert (ROOT / name).parent.joinpath(target).exists(), target


def test_blocks_and_commands_are_found() -> None:
    page = "```python\na = 1\n```\n\n```console\n$ attnlab bench 'dot | softmax'  # slow\n$ make demo\n```\n"
    assert blocks(page, "python") == ["a = 1\n"]
    assert commands(page) == [["bench", "dot | softmax"]]
