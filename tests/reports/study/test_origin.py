"""What was run: plugins with every content they had, and options that changed the study file."""

import json
from pathlib import Path

from attnlab.reports.study.page import render_page

from .made import BASE, HOSTILE, START, Made
from .reading import Elements, contents


def test_a_file_of_own_stages_is_shown_with_every_content_it_had(tmp_path: Path) -> None:
    made = Made(tmp_path)  # whose start has no such key, as those of older ledgers
    assert contents(tmp_path).origin.own_files == []
    for sha256, text in (("a" * 64, f"# {HOSTILE}"), ("b" * 64, "# other"), ("b" * 64, "# other")):
        plugins = [{"file": "own.py", "sha256": sha256, "text": text}]
        made.ledger.add_event("started", json.dumps({**START, "plugins": plugins}))
    found = contents(made.give("dot", BASE).done())
    (file,) = found.origin.own_files
    assert file.is_changed
    at = {one.sha256[0]: one.starts for one in file.versions}
    assert at == {"a": "at start 2 of 4", "b": "at start 3, 4 of 4"}
    assert not [name for name, _ in found.origin.facts if "plugins" in name]
    page = render_page(found)
    assert Elements(page).open == []
    assert "Its content changed between starts" in page
    assert page.count("<summary>Its source</summary>") == 2
    assert "<pre># &lt;script&gt;alert(1)" in page
    assert "<script>alert" not in page


def test_a_file_of_own_stages_that_stayed_the_same_is_shown_once(tmp_path: Path) -> None:
    made = Made(tmp_path)
    plugins = [{"file": "own.py", "sha256": "a" * 64, "text": "# own"}]
    made.ledger.add_event("started", json.dumps({**START, "plugins": plugins}))
    made.ledger.add_event("started", json.dumps({**START, "plugins": plugins}))
    found = contents(made.give("dot", BASE).done())
    (file,) = found.origin.own_files
    assert (len(file.versions), file.is_changed) == (1, False)
    assert "changed between starts" not in render_page(found)


def test_what_was_run_otherwise_than_the_file_says_is_named(tmp_path: Path) -> None:
    made = Made(tmp_path)
    (tmp_path / "study.toml").write_text("steps = 300\n", encoding="utf-8")
    assert contents(tmp_path).origin.study_note == ""
    again = "attnlab run study.toml --out here --budget smoke --set 'seeds=[1, 2]' --set a.steps=60"
    made.ledger.add_event("started", json.dumps({**START, "command": again}))
    note = "this file with --budget smoke, --set 'seeds=[1, 2]', --set a.steps=60, which replace values"
    assert note in contents(tmp_path).origin.study_note
    assert "<p>What was run is this file with --budget smoke" in render_page(contents(tmp_path))
    (tmp_path / "study.toml").unlink()
    assert contents(made.done()).origin.study_note == ""
