"""The keys of an arm's audits in the ledger: its lines, and the task whose head the audited models have."""

from typing import Any

from ..file.design import Design

CAUSAL_HEAD = "AutoModelForCausalLM"
MARK = " (own stages "
LEAKS = "its audit finds a leak"
"""Why an arm is not compared, in its verdict."""


def find_audited_task(study: Design) -> Any:
    """Return the task whose head the audited models of a study have: the first causal one, or the first."""
    # Imported here because the audits in a ledger are read without torch.
    from attnlab.tasks import load as load_task

    tasks = [load_task(phase.task, **phase.task_settings) for phase in study.phases]
    return next((task for task in tasks if is_causal_task(task)), tasks[0])


def list_lines(study: Design, arm: str) -> list[str]:
    """Return the mechanisms of an arm, which may differ between sizes."""
    return list(dict.fromkeys(study.arms[arm].line(size) for size in study.sizes))


def remove_mark(key: str) -> str:
    """Return what was audited, without the hash of its files."""
    return key.partition(MARK)[0]


def is_causal_task(task: Any) -> bool:
    """Tell whether no token may see a later one in a task."""
    return bool(task.head == CAUSAL_HEAD)
