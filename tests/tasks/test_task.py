"""Every task of the catalog has the whole interface of a task."""

import inspect

import pytest

from attnlab.tasks import load
from attnlab.tasks.catalog import TASKS
from attnlab.tasks.task import Task

METHODS = [name for name, member in vars(Task).items() if inspect.isfunction(member) and not name.startswith("_")]
PROPERTIES = [name for name, member in vars(Task).items() if isinstance(member, property)]


@pytest.mark.parametrize("name", TASKS)
def test_a_task_has_every_method_and_property(name: str) -> None:
    task = load(name)
    assert [method for method in METHODS if not callable(getattr(task, method, None))] == []
    assert [attribute for attribute in PROPERTIES if not hasattr(task, attribute)] == []
    assert task.name == name
