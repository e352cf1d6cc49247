"""`attnlab demo` runs the quickstart recipe, with more updates if asked, and says how to continue."""

from typing import Any

import pytest

from attnlab.cli import demo, main


@pytest.mark.parametrize(
    ("words", "budget", "folder"), [([], "smoke", "out/demo"), (["--long"], "laptop", "out/demo-long")]
)
def test_the_budget_follows_the_option(
    words: list[str], budget: str, folder: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls: list[tuple[str, dict[str, Any]]] = []

    def run(file: str, **options: Any) -> int:
        calls.append((file, options))
        return 0

    monkeypatch.setattr(demo, "run", run)
    assert main(["demo", *words]) == 0
    assert calls == [("quickstart", {"out": folder, "budget": budget, "workers": 2})]
    verbs = [line.split()[1] for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    assert verbs == ["new", "run", "report"]


def test_a_stopped_demo_keeps_its_status(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(demo, "run", lambda *_, **__: 1)
    assert main(["demo", "--out", "here"]) == 1
    assert "attnlab new" not in capsys.readouterr().out
