"""A report says what the ledger carries and no more: finished, unfinished, failed, leaking, with odd numbers."""

from __future__ import annotations

import csv
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from attnlab.errors import StudyError
from attnlab.reports import write_report
from attnlab.reports.study.contents import Contents, collect_contents
from attnlab.reports.study.page import render_page
from attnlab.studies.answers.study_folder import PLAN, open_record
from attnlab.studies.ledger.database import Delivery
from tests.studies.samples import content

from .made import ARMS, BASE, HIGH, HOSTILE, LEAK, PAIRING, START, Made, history, whole

VOID = {"meta"}


class Elements(HTMLParser):
    """Collects every element and attribute, and checks that what is opened is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.scripts: list[tuple[str | None, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append((dict(attrs).get("type"), ""))

    def handle_data(self, data: str) -> None:
        if self.open[-1:] == ["script"]:
            kind, text = self.scripts.pop()
            self.scripts.append((kind, text + data))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def contents(folder: Path) -> Contents:
    with open_record(folder) as record:
        return collect_contents(record)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = whole(tmp_path_factory.mktemp("whole"))
    write_report(found)
    return found


@pytest.fixture(scope="module")
def page(folder: Path) -> str:
    return (folder / "report.html").read_text(encoding="utf-8")


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_verdicts_are_said_in_words_and_numbers(folder: Path) -> None:
    better, worse = contents(folder).headline.verdicts
    assert (better.arm, better.verdict, better.tone) == ("better", "BETTER BY AT LEAST 0.02", "good")
    assert re.fullmatch(r"accuracy \+0\.102 \[\+0\.\d+, \+0\.\d+\] over 5 paired seeds", better.numbers)
    assert (worse.verdict, worse.numbers[:8]) == ("TOO FEW SEEDS (n < 5)", "accuracy")


def test_an_arm_that_leaks_stands_apart_and_is_not_in_the_forest(folder: Path) -> None:
    found = contents(folder)
    (apart,) = found.headline.apart
    assert (apart.arm, apart.verdict, apart.reason) == ("leaking", "NOT COMPARABLE", "Its audit finds a leak.")
    forest = found.effects[0]
    assert "not here: leaking" in forest.caption
    assert [leak.figure.name for leak in found.leaks if leak.figure] == ["leak-leaking"]
    row = next(row for row in rows(folder / "tables" / "summary.csv") if row["arm"] == "leaking")
    assert row["is_comparable"] == "False"


def test_every_section_is_there_and_in_order(page: str) -> None:
    names = ["effects", "curves", "results", "audits", "traces", "samples", "data", "words", "origin"]
    names += ["integrity", "limits"]
    assert re.findall(r'<section id="(\w+)"', page) == names


def test_nothing_is_loaded_and_only_our_own_scripts_run(page: str) -> None:
    elements = Elements(page)
    assert elements.open == []
    assert not {"link", "img", "iframe", "object", "base", "form"} & {tag for tag, _ in elements.found}
    for tag, attributes in elements.found:
        assert not {"src", "srcset", "style"} & set(attributes)
        assert not [name for name in attributes if name.startswith("on")]
        assert "href" not in attributes or (tag == "a" and str(attributes["href"]).startswith("#"))
    assert len([text for kind, text in elements.scripts if kind is None]) == 2
    policy = next(attributes["content"] for _, attributes in elements.found if "http-equiv" in attributes)
    assert policy is not None
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy


def test_hostile_text_stays_text(page: str) -> None:
    assert page.count("&lt;script&gt;alert(1)") >= 4
    assert "<script>alert" not in page
    assert "{{ 7 * 7 }}" in page
    specs = [json.loads(text) for kind, text in Elements(page).scripts if kind == "application/json"]
    assert len(specs) >= 6
    assert all("$schema" in spec for spec in specs)


def test_pictures_of_one_page_do_not_share_names(page: str) -> None:
    names = [attributes["id"] for _, attributes in Elements(page).found if "id" in attributes]
    assert len(names) == len(set(names))


def test_figures_are_there_for_papers(folder: Path) -> None:
    names = {path.name for path in (folder / "figures").iterdir()}
    for stem in ("forest-recall-tiny", "seeds-recall-tiny", "curves-recall-tiny-train-loss", "leak-leaking"):
        assert {f"{stem}.svg", f"{stem}.png"} <= names
    assert not [name for name in names if name.startswith(".")]


def test_every_run_is_in_a_table(folder: Path) -> None:
    found = rows(folder / "tables" / "per_seed.csv")
    assert len(found) == 20
    lost = next(row for row in found if row["arm"] == "worse" and row["seed"] == "3")
    assert (lost["status"], lost["accuracy"]) == ("diverged", "")
    assert found[0] == {
        "phase": "recall", "size": "tiny", "arm": "dot", "seed": "1", "run": found[0]["run"], "status": "finished",
        "step": "4", "accuracy": "0.5", "seconds": "2.0", "tokens": "1000", "parameters": "120", "trained": "100",
    }  # fmt: skip


def test_samples_stand_side_by_side_and_losses_are_means(folder: Path) -> None:
    found = contents(folder)
    (samples,), (sentences,) = found.samples, found.sentences
    assert samples.arms == ["dot", "better", "leaking", "worse"]
    assert [seed for _, seed, _ in samples.rows] == [1, 2, 3]
    assert "first 3 of 5 seeds" in samples.note
    assert sentences.rows[0] == (HOSTILE, ["2.5 (12.2)"] * 4)


def test_limits_speak_of_the_design(folder: Path) -> None:
    said = " ".join(contents(folder).limits)
    for words in ("5 seeds per arm", "One model size, tiny", "one dataset, recall", "worse 1 of 5", "correlation"):
        assert words in said


def test_an_unfinished_study_has_no_verdict(tmp_path: Path) -> None:
    made = Made(tmp_path)
    made.give("dot", BASE)
    made.give("better", HIGH[:2])
    page = write_report(made.done()).read_text(encoding="utf-8")
    found = contents(tmp_path)
    assert found.headline.state.startswith("7 of 10 runs have ended. There are no verdicts yet")
    assert not found.headline.verdicts
    assert [figure.kind for figure in found.figures] == ["seeds"]
    assert "BETTER" not in page


def test_a_study_without_any_result_is_reported_too(tmp_path: Path) -> None:
    made = Made(tmp_path)
    for run in made.planned:
        made.ledger.fail(made.ledger.begin(run.id, "here"), "no room left")
        made.ledger.give_up(run.id, "no room left")
    page = write_report(made.done()).read_text(encoding="utf-8")
    assert "0 of 10 runs have ended, 10 failed" in page
    assert "no room left" in page
    assert "NOT COMPARABLE" in page
    assert not list((tmp_path / "figures").glob("*"))


@pytest.mark.parametrize("odd", ["NaN", "-Infinity", 1e300])
def test_figures_that_are_no_numbers_are_left_out_and_counted(odd: Any, tmp_path: Path) -> None:
    made = Made(tmp_path)
    lines = history()
    lines[0]["loss"] = lines[1]["accuracy"] = odd
    lines[2]["h.0.attn.entropy"] = [odd, odd]
    made.give("dot", BASE, metrics=lines)
    made.give("better", [*HIGH[:4], "NaN"], metrics=history())
    text = render_page(contents(made.done()))
    found = contents(tmp_path)
    row = found.places[0].rows[1]
    assert (row.summary.n, row.values[5]) == (4, None)
    assert "NaN" not in json.dumps([json.loads(spec) for kind, spec in Elements(text).scripts if kind])


def test_one_seed_has_no_interval(tmp_path: Path) -> None:
    made = Made(tmp_path, seeds=[1])
    made.give("dot", BASE[:1]).give("better", HIGH[:1])
    found = contents(made.done())
    assert found.headline.verdicts[0].numbers == "accuracy +0.1 over 1 paired seed"
    assert "1 seed per arm: the spread is almost unknown, so there is no verdict." in found.limits
    assert render_page(found)


def test_a_map_that_the_ledger_has_not_is_drawn_anew_and_said_so(tmp_path: Path) -> None:
    arms = {"dot": "dot | softmax", "leaking": "dot | softmax | mask(after)"}
    made = Made(tmp_path, {"leaking": "its audit finds a leak"}, arms=arms)
    made.audit("leaking", {**LEAK, "data": {}})
    (leak,) = contents(made.done()).leaks
    assert leak.figure is not None
    assert "computed again" in leak.figure.caption


def test_pictures_of_an_earlier_report_go_and_files_of_others_stay(tmp_path: Path) -> None:
    made = Made(tmp_path)
    made.give("dot", BASE)
    folder = made.done()
    write_report(folder)
    pictures = folder / "figures"
    for name in ("forest-old-tiny.svg", "my-own.svg", "forest-notes.txt"):
        (pictures / name).write_text("x", encoding="utf-8")
    write_report(folder)
    assert {path.name for path in pictures.iterdir()} == {
        "seeds-recall-tiny.svg", "seeds-recall-tiny.png", "my-own.svg", "forest-notes.txt"
    }  # fmt: skip


def test_a_folder_that_is_no_study_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="holds no study"):
        write_report(tmp_path)
    with pytest.raises(StudyError, match="is no folder"):
        write_report(tmp_path / "nowhere")


def test_the_study_file_is_shown_and_its_budget_is_minded(tmp_path: Path) -> None:
    made = Made(tmp_path)
    made.give("dot", BASE).give("better", HIGH)
    (tmp_path / "study.toml").write_text(f"# {HOSTILE}\n[budgets.paper]\nseeds = [1]\n", encoding="utf-8")
    found = contents(made.done())
    assert found.origin.study_text.startswith(f"# {HOSTILE}")
    assert any("not with 'paper'" in limit for limit in found.limits)
    assert "<script>alert" not in render_page(found)


def test_an_arm_with_a_line_for_every_size_shows_them_all(tmp_path: Path) -> None:
    config = {"n_layer": 1, "n_embd": 16, "n_head": 2, "n_positions": 32}
    size, other = ({"architecture": "gpt2", "config": {**config, "n_embd": width}} for width in (16, 32))
    mine = {"mechanism": "dot | softmax | bypass(alpha=0.5)", "by_size": {"wide": "dot | softmax | bypass(alpha=0.25)"}}
    made = Made(tmp_path, arms={"dot": "dot | softmax", "mine": mine}, sizes={"tiny": size, "wide": other})
    found = contents(made.give("dot", BASE).done())
    assert found.lines["dot"] == [("dot | softmax", "")]
    assert [sizes for _, sizes in found.lines["mine"]] == ["tiny", "wide"]
    assert "bypass(alpha=0.25)</code> (wide)" in render_page(found)


def test_an_arm_whose_audit_is_missing_is_not_called_sound(tmp_path: Path) -> None:
    page = render_page(contents(Made(tmp_path).give("dot", BASE).done()))
    assert "its audit is not in the ledger" in page
    assert "nothing is wrong" not in page


def test_a_phase_that_is_not_known_here_is_said(tmp_path: Path) -> None:
    made = Made(tmp_path, {"better": "its audit finds a leak"})
    design, plan = (json.loads(made.ledger.events(kind)[-1]) for kind in ("design", PLAN))
    design["arms"]["better"]["mechanism"] = "laplace | softmax"
    plan["audits"]["better"] = ["laplace | softmax"]
    made.ledger.say("design", json.dumps(design))
    made.ledger.say(PLAN, json.dumps(plan))
    made.ledger.add_audit("laplace | softmax", True, False, [{**LEAK, "data": {}}])
    page = write_report(made.give("dot", BASE).done()).read_text(encoding="utf-8")
    assert "The map of better cannot be drawn, since its mechanism is not known here: unknown stage" in page


def test_a_file_of_own_stages_is_shown_with_every_content_it_had(tmp_path: Path) -> None:
    made = Made(tmp_path)  # whose start has no such key, as those of older ledgers
    assert contents(tmp_path).origin.own_files == []
    for sha256, text in (("a" * 64, f"# {HOSTILE}"), ("b" * 64, "# other"), ("b" * 64, "# other")):
        plugins = [{"file": "own.py", "sha256": sha256, "text": text}]
        made.ledger.say("started", json.dumps({**START, "plugins": plugins}))
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
    made.ledger.say("started", json.dumps({**START, "plugins": plugins}))
    made.ledger.say("started", json.dumps({**START, "plugins": plugins}))
    found = contents(made.give("dot", BASE).done())
    (file,) = found.origin.own_files
    assert (len(file.versions), file.is_changed) == (1, False)
    assert "changed between starts" not in render_page(found)


def test_what_was_run_otherwise_than_the_file_says_is_named(tmp_path: Path) -> None:
    made = Made(tmp_path)
    (tmp_path / "study.toml").write_text("steps = 300\n", encoding="utf-8")
    assert contents(tmp_path).origin.study_note == ""
    again = "attnlab run study.toml --out here --budget smoke --set 'seeds=[1, 2]' --set a.steps=60"
    made.ledger.say("started", json.dumps({**START, "command": again}))
    note = "this file with --budget smoke, --set 'seeds=[1, 2]', --set a.steps=60, which replace values"
    assert note in contents(tmp_path).origin.study_note
    assert "<p>What was run is this file with --budget smoke" in render_page(contents(tmp_path))
    (tmp_path / "study.toml").unlink()
    assert contents(made.done()).origin.study_note == ""


def test_the_length_of_training_is_that_of_the_runs(tmp_path: Path) -> None:
    arms = {**ARMS, "long": {"mechanism": "angle | softmax", "set": {"phases.recall.segments.0.steps": 1200}}}
    phases = content()["phases"]
    segments = [{"epochs": 1.5, "batch": 8}, {"epochs": 1.0, "batch": 1}]
    made = Made(tmp_path, arms=arms, phases=[*phases, {**phases[0], "name": "again", "segments": segments}])
    said = "Length of training: 4 updates of 8 rows in recall (long: 1,200 updates of 8 rows); 1.5 epochs of 8 rows, "
    state = contents(tmp_path).headline.state
    assert state.endswith(f"{said}then 1 epoch of 1 row in again.")
    last = {"step": 95, "primary": "accuracy", "figures": {"accuracy": 0.5}}
    for run in [run for run in made.planned if run.phase == "again"]:
        result = {"last": last, "step": 95, "num_steps": 95, "seconds": 1.0, "tokens": 10}
        attempt = made.ledger.begin(run.id, "here")
        made.ledger.deliver(Delivery(run.id, attempt, "finished", result, [], PAIRING, [], {}))
    assert contents(made.done()).headline.state.endswith("then 1 epoch of 1 row (95 updates in all) in again.")
