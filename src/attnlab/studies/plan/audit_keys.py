"""What the ledger keeps the audits of an arm by: its lines, and the task whose head the audited models have."""

from __future__ import annotations

from typing import Any

from ..file.design import Design

FORWARDS = "AutoModelForCausalLM"
MARK = " (own stages "


def audited_task(study: Design) -> Any:
    """Return the task whose head the audited models of a study have: the first that reads forwards, where one does."""
    # Imported here because the audits in a ledger are read without torch.
    from attnlab.tasks import load as load_task

    tasks = [load_task(phase.task, **phase.task_settings) for phase in study.phases]
    return next((task for task in tasks if reads_forwards(task)), tasks[0])


def lines_of(study: Design, arm: str) -> list[str]:
    """Return an arm's mechanism, or its several where models of different sizes have different ones."""
    return list(dict.fromkeys(study.arms[arm].line(size) for size in study.sizes))


def unmarked(key: str) -> str:
    """Return what was audited, without the mark of its files."""
    return key.partition(MARK)[0]


def reads_forwards(task: Any) -> bool:
    """Tell whether a task asks a model to read forwards, so that no token may see a later one."""
    return bool(task.head == FORWARDS)
