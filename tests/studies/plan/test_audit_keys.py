"""The keys of audits: the task that decides the mask, the lines of an arm, and what was audited."""

from attnlab.studies.plan.audit_keys import MARK, find_audited_task, is_causal_task, list_lines, remove_mark

from ..samples import content, study


def test_the_first_causal_task_decides_how_arms_are_audited() -> None:
    assert is_causal_task(find_audited_task(study().design))
    plain = content()["phases"][0]
    masked = {**plain, "name": "masked", "task": "mlm", "task_settings": {"max_len": 8}}
    assert find_audited_task(study(phases=[masked, plain]).design).name == "mqar"
    assert not is_causal_task(find_audited_task(study(phases=[masked]).design))


def test_a_line_that_two_sizes_share_is_listed_once() -> None:
    sizes = {name: content()["sizes"]["tiny"] for name in ("small", "same", "wide")}
    arm = {"mechanism": "cosine | relu", "by_size": {"wide": "cosine | gelu"}}
    design = study(sizes=sizes, arms__own=arm).design
    assert list_lines(design, "own") == ["cosine | relu", "cosine | gelu"]


def test_the_mark_of_plugins_is_removed_from_a_key() -> None:
    assert remove_mark(f"dot | cubed{MARK}0a1b2c3d)") == "dot | cubed"
    assert remove_mark("dot | softmax") == "dot | softmax"
