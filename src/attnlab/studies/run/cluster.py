"""The study's end of the line to a Ray cluster: a task a run, whose folder travels there and back as bytes."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from attnlab.errors import AttnlabError, StudyError
from attnlab.training import RunSpec
from attnlab.training.build import split_in

from . import node
from .dispatch import POLL
from .parcel import pack, unpack
from .run_outputs import readdress
from .server import FAILED, INTERRUPTED
from .versions import versions

STARTS = (("start", "checkpoint"), ("data", "tokenizer"))
"""What of a config may name files of a model, which are sent along."""
MARKS = (":best", ":last")
OWN_NODE = "that of this machine, which ends this process: bring it back with `ray start`, and give the same command"


@dataclass
class Going:
    """A run that was sent."""

    order: dict[str, Any]
    place: str = ""
    """The node that it is on, once it is on one."""
    process: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Its process there, once there is one."""
    is_over: bool = False


class Cluster:
    """A cluster that this process is connected to, with the interface of `Dispatch`."""

    def __init__(self, plugins: Sequence[str] = ()) -> None:
        self.ray: Any = importlib.import_module("ray")
        self.place = self.ray.get_runtime_context().get_node_id()
        self.is_on_gpu = torch.cuda.is_available()
        self.plugins = tuple((Path(plugin).name, Path(plugin).read_bytes()) for plugin in plugins)
        # Whether a run is tried again is for the study to say, which knows why it ended.
        self.task = self.ray.remote(num_returns="streaming", max_retries=0)(node.work)
        self.going: dict[Any, Going] = {}
        self.sent: dict[Path, Any] = {}
        """Files that runs start from, each in the cluster's store once."""

    def send(self, order: dict[str, Any]) -> None:
        """Give an order."""
        if order.get("stop"):
            for task, going in self.going.items():
                self.stop(task, going)
            return
        parcels: dict[str, Any] = {}
        shipped = []
        for part, name in STARTS:
            found = files_in(order["config"][part][name])
            if found is not None:
                place, mark = found
                if place not in self.sent:
                    self.sent[place] = self.ray.put(pack(place))
                parcels[name] = self.sent[place]
                shipped.append((part, name, mark))
        folder = Path(order["folder"])
        if folder.exists():
            parcels[node.RUN] = self.ray.put(pack(folder))
        config, sources = placed(order["config"])
        errand = {
            "order": {"id": order["id"]}, "config": config,
            "shipped": shipped, "sources": sources, "plugins": self.plugins, "is_on_gpu": self.is_on_gpu,
            "versions": versions(),
        }  # fmt: skip
        threads = order["config"]["threads"]
        options = self.task.options(num_cpus=threads, num_gpus=int(self.is_on_gpu), name=f"run {order['id']}")
        self.going[options.remote(errand, list(parcels), *parcels.values())] = Going(order)

    def stop(self, task: Any, going: Going) -> None:
        """Ask a run to stop: its process where there is one, else the task."""
        if not going.process:
            self.ray.cancel(task)
            return
        affinity = importlib.import_module("ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy
        there = affinity(node_id=going.place, soft=False)
        asking = self.ray.remote(num_cpus=0, max_retries=0, scheduling_strategy=there)(node.stop)
        asking.remote(going.process["pid"], going.process["group"])

    def hear(self) -> list[dict[str, Any]]:
        """Return what was answered, after a short while nothing."""
        ready, _ = self.ray.wait(list(self.going), timeout=POLL)
        answers = [self.answer_of(task, self.going[task]) for task in ready]
        return [answer for answer in answers if answer is not None]

    def answer_of(self, task: Any, going: Going) -> dict[str, Any] | None:
        """Return the next answer of a task; how it ended comes once."""
        id = going.order["id"]
        try:
            answer: dict[str, Any] = self.ray.get(next(task))
        except StopIteration:
            del self.going[task]
            return None if going.is_over else {"id": id, "lost": "its task ended without a word"}
        except self.ray.exceptions.RayError as error:
            del self.going[task]
            return None if going.is_over else {"id": id, **self.end_of(error, going.place)}
        if "refusal" in answer:
            raise StudyError(answer["refusal"])
        going.place = answer.get("place", going.place)
        if "pid" in answer:
            going.process = answer
        if "folder" in answer:
            going.is_over = True
            take_home(answer.pop("folder"), going.order)
        return answer

    def end_of(self, error: Any, place: str) -> dict[str, Any]:
        """Say how a task ended that has no more to say: asked to stop, failed, or lost with its node."""
        known = self.ray.exceptions
        if isinstance(error, known.TaskCancelledError):
            return {"status": INTERRUPTED}
        if isinstance(error, known.OutOfMemoryError):
            return {"status": FAILED, "reason": "its node has no memory left for it"}
        if isinstance(error, known.RayTaskError):
            return {"status": FAILED, "reason": reason_in(error)}
        # Ray ends a process whose own node is gone, without a word of its own.
        return {"lost": OWN_NODE if place == self.place else type(error).__name__}

    def close(self, *, at_once: bool) -> None:
        """Leave nothing behind: tasks that are still there end with their workers."""
        if at_once:
            for task in self.going:
                self.ray.cancel(task, force=True)
        self.going.clear()


def files_in(name: str | None) -> tuple[Path, str] | None:
    """Return the files a name stands for and the mark behind them, where it is no name of the hub."""
    if name is None:
        return None
    mark = next((mark for mark in MARKS if name.endswith(mark)), "")
    place = Path(name.removesuffix(mark)).expanduser().resolve()
    return (place, mark) if place.exists() else None


def placed(config: dict[str, Any]) -> tuple[dict[str, Any], list[tuple[str, str | None, str]]]:
    """Return a config whose data has whole paths, and what that data holds."""
    data = dict(config["data"])
    sources = []
    for split in ("train", "dev"):
        name = data[split]
        if name is not None and Path(name).expanduser().exists():
            name = data[split] = str(Path(name).expanduser().resolve())
        if name is None and split_in(data["train"], split) is not None:
            name = data["train"]  # what a run is evaluated on where nothing is named
        if name is not None:
            sources.append((name, split_in(name, split), node.digest_of(name, split_in(name, split))))
    return {**config, "data": data}, sources


def take_home(parcel: bytes, order: dict[str, Any]) -> None:
    """Put the folder of a run where the study keeps it, and let it say where things are here."""
    folder = Path(order["folder"])
    unpack(parcel, folder)
    readdress(folder, RunSpec.of(order["config"]))


def reason_in(error: Any) -> str:
    """Say why a task failed, in our words or the node's last ones; a node without attnlab would fail every run."""
    cause = error.cause
    if isinstance(cause, AttnlabError):
        return str(cause)
    if "No module named 'attnlab" in str(error):
        raise StudyError("a node has no attnlab; `pip install 'attnlab[ray]'` on every node installs it") from error
    return str(error).strip().splitlines()[-1]
