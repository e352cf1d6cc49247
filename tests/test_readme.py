"""The README's code runs: Python blocks as they stand, and every `attnlab` command it shows."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"


def blocks(text: str, *languages: str) -> list[str]:
    """Take the fenced code blocks in any of the languages out of a page."""
    return [body for language, body in re.findall(r"^```(\w+)\n(.*?)^```", text, re.M | re.S) if language in languages]


def commands(text: str) -> list[list[str]]:
    """Take the attnlab commands, without prompt and comment, out of a page's shell blocks."""
    lines = "\n".join(blocks(text, "sh", "console")).splitlines()
    split = [shlex.split(line.removeprefix("$ "), comments=True) for line in lines]
    return [words[1:] for words in split if words[:1] == ["attnlab"]]


PAGE = README.read_text(encoding="utf-8")


@pytest.mark.usefixtures("own_stages")
@pytest.mark.parametrize("code", blocks(PAGE, "python"))
def test_python_block_runs(code: str) -> None:
    exec(compile(code, "a README block", "exec"), {"__name__": "readme"})


@pytest.mark.parametrize("arguments", commands(PAGE), ids=" ".join)
def test_command_runs(arguments: list[str], tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "attnlab", *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_the_readme_shows_code_of_both_kinds() -> None:
    assert blocks(PAGE, "python")
    assert commands(PAGE)


def test_blocks_and_commands_are_found() -> None:
    page = "```python\na = 1\n```\n\n```console\n$ attnlab bench 'dot | softmax'  # slow\n$ make demo\n```\n"
    assert blocks(page, "python") == ["a = 1\n"]
    assert commands(page) == [["bench", "dot | softmax"]]
