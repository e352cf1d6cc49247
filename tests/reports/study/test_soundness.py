"""Audits on the page, and the maps of leaks."""

import json
from pathlib import Path

from attnlab.reports import write_report
from attnlab.reports.study.page import render_page
from attnlab.studies.answers.study_folder import PLAN

from .made import BASE, LEAK, Made
from .reading import contents


def test_a_map_that_the_ledger_has_not_is_drawn_anew_and_said_so(tmp_path: Path) -> None:
    arms = {"dot": "dot | softmax", "leaking": "dot | softmax | mask(after)"}
    made = Made(tmp_path, {"leaking": "its audit finds a leak"}, arms=arms)
    made.audit("leaking", {**LEAK, "data": {}})
    (leak,) = contents(made.done()).leaks
    assert leak.figure is not None
    assert "computed again" in leak.figure.caption


def test_an_arm_whose_audit_is_missing_is_not_called_sound(tmp_path: Path) -> None:
    page = render_page(contents(Made(tmp_path).give("dot", BASE).done()))
    assert "its audit is not in the ledger" in page
    assert "nothing is wrong" not in page


def test_a_phase_that_is_not_known_here_is_said(tmp_path: Path) -> None:
    made = Made(tmp_path, {"better": "its audit finds a leak"})
    design, plan = (json.loads(made.ledger.events(kind)[-1]) for kind in ("design", PLAN))
    design["arms"]["better"]["mechanism"] = "laplace | softmax"
    plan["audits"]["better"] = ["laplace | softmax"]
    made.ledger.add_event("design", json.dumps(design))
    made.ledger.add_event(PLAN, json.dumps(plan))
    made.ledger.add_audit("laplace | softmax", True, False, [{**LEAK, "data": {}}])
    page = write_report(made.give("dot", BASE).done()).read_text(encoding="utf-8")
    assert "The map of better cannot be drawn, since its mechanism is not known here: unknown stage" in page
