"""Every block of docs/tutorial.md runs, in the order of the page, in an empty folder; its studies with few steps."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from attnlab.cli import main
from attnlab.mechanisms import REGISTRY

PAGE = (Path(__file__).parents[2] / "docs" / "tutorial.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```", re.M | re.S)
SHORT = (
    "--set", "phases.text.segments.0.steps=2", "--set", "phases.recall.segments.0.steps=2", "--set", "seeds=[1, 2]",
)  # fmt: skip
"""What studies are given besides."""


@pytest.mark.usefixtures("here", "own_stages")
def test_the_tutorial_goes_from_an_idea_to_a_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    said: dict[str, str] = {}
    before = dict(REGISTRY)

    def anew() -> None:
        """Forget the page's phase, as each command that takes it as a plugin is a process of its own."""
        REGISTRY.clear()
        REGISTRY.update(before)

    for language, about, body in BLOCK.findall(PAGE):
        if about.strip().startswith("file="):
            Path(about.strip().removeprefix("file=")).write_text(body, encoding="utf-8")
        elif language == "python":
            exec(compile(body, "a block of docs/tutorial.md", "exec"), {"__name__": "page"})
        elif language == "sh":
            expected = 1 if "status=1" in about else 0
            for line in body.splitlines():
                words = shlex.split(line)
                assert words[0] == "attnlab"
                anew()
                is_trained = words[1] == "run" and "--dry-run" not in words
                assert main([*words[1:], *(SHORT if is_trained else ())]) == expected, line
                said[words[1]] = capsys.readouterr().out
    assert "squared" in said["run"]
    assert Path("study/report.html").exists()
    assert "seeds" in said["plan"]
    assert {"audit", "new", "run", "compare", "report", "plan"} <= set(said)
