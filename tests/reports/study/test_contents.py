"""The contents of a report: the lines of each arm by size, and which arms are sound."""

import dataclasses
from pathlib import Path

from attnlab.reports.study.page import render_page
from attnlab.reports.study.soundness import ArmAudit
from attnlab.studies.integrity import IntegrityFinding, IntegrityKind

from .made import BASE, Made
from .reading import contents


def test_an_arm_with_a_line_for_every_size_shows_them_all(tmp_path: Path) -> None:
    config = {"n_layer": 1, "n_embd": 16, "n_head": 2, "n_positions": 32}
    size, other = ({"architecture": "gpt2", "config": {**config, "n_embd": width}} for width in (16, 32))
    mine = {"mechanism": "dot | softmax | bypass(alpha=0.5)", "by_size": {"wide": "dot | softmax | bypass(alpha=0.25)"}}
    made = Made(tmp_path, arms={"dot": "dot | softmax", "mine": mine}, sizes={"tiny": size, "wide": other})
    found = contents(made.give("dot", BASE).done())
    assert found.lines["dot"] == [("dot | softmax", "")]
    assert [sizes for _, sizes in found.lines["mine"]] == ["tiny", "wide"]
    assert "bypass(alpha=0.25)</code> (wide)" in render_page(found)


def test_an_arm_with_a_fault_in_one_of_its_audits_is_sound_in_part(tmp_path: Path) -> None:
    found = contents(Made(tmp_path).give("dot", BASE).done())
    sound = [ArmAudit(arm, "alone", {"gradient flow": "passed"}, (), ()) for arm in ("dot", "hard")]
    faulty = ArmAudit("hard", "in a model", {"gradient flow": "FAILED"}, ("Keys get no gradient.",), ())
    assert dataclasses.replace(found, audits=sound).sound_arms == "dot, hard"
    found = dataclasses.replace(found, audits=[*sound, faulty])
    assert found.sound_arms == "dot; in part hard"
    assert "Sound: dot; in part hard (2 of 3 audits)" in render_page(found)


def test_a_fault_is_above_the_verdicts_unless_it_is_an_arm_that_leaks(tmp_path: Path) -> None:
    found = contents(Made(tmp_path).give("dot", BASE).done())
    kinds = (IntegrityKind.TRAINED_ON_HELD_OUT, IntegrityKind.LEAK)
    findings = [IntegrityFinding(kind, f"{kind.value} 35 %") for kind in kinds]
    page = render_page(dataclasses.replace(found, findings=findings))
    assert [finding.kind for finding in dataclasses.replace(found, findings=findings).faults] == [kinds[0]]
    assert (
        0 < page.index("trained on what is held out 35 %") < page.index('id="state"') < page.index("a leaking arm 35 %")
    )
