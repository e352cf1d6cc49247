"""The workers of a Ray cluster, found by RAY_ADDRESS: a task for each run, whose folder is sent as bytes."""

import importlib
import logging
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from attnlab.errors import AttnlabError, StudyError, closest
from attnlab.inputs import expand_path, is_whole_number
from attnlab.training.job.build import choose_split

from ..plan.identity import find_files
from . import node
from .parcel import pack, unpack, update_paths
from .workers import POLL, RunEvent, RunOrder

SHIPPED = (("start", "checkpoint"), ("data", "tokenizer"))
"""The settings that may name files of a model, which are sent with the run."""
OWN_NODE = "that of this machine, which ends this process: restart it with `ray start`, and repeat the command"
PLACES = ("local", "ray")
"""Where runs can be trained."""
OLDEST = (2, 54)
PATIENCE = 20.0
"""Seconds that a cluster has to answer."""
REACH = 3.0
"""Seconds that its port has to open."""
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0", "RAY_DEDUP_LOGS_SKIP_REGEX": "."}
"""Environment variables that Ray reads on import; the last one suppresses the log of a lost node."""
CONNECT = "import sys, ray; ray.init(address=sys.argv[1], log_to_driver=False)"
ADVICE = "start one with `ray start --head` on this machine, or set RAY_ADDRESS=HOST:PORT to that of its head"


@dataclass
class _Task:
    order: RunOrder
    node: str = ""
    """Its node, once it has started."""
    process: tuple[int, int] | None = None
    """Its process on the node, and the process group."""
    has_ended: bool = False


class RayWorkers:
    """The workers of the cluster that this process is connected to."""

    def __init__(self, plugins: Sequence[str] = ()) -> None:
        self.ray: Any = importlib.import_module("ray")
        self.node = self.ray.get_runtime_context().get_node_id()
        self.is_on_gpu = torch.cuda.is_available()
        self.plugins = tuple((Path(plugin).name, Path(plugin).read_bytes()) for plugin in plugins)
        # The study decides whether a run is tried again, since it knows why the run ended.
        self.train = self.ray.remote(num_returns="streaming", max_retries=0)(node.train_on_node)
        self.tasks: dict[Any, _Task] = {}
        self.sent: dict[Path, Any] = {}
        """Files that runs start from, each in the cluster's store once."""

    def send(self, order: RunOrder) -> None:
        """Queue a run."""
        parcels: dict[str, Any] = {}
        shipped = []
        for part, name in SHIPPED:
            if (files := find_files(order.config[part][name])) is not None:
                path, mark = files
                if path not in self.sent:
                    self.sent[path] = self.ray.put(pack(path))
                parcels[name] = self.sent[path]
                shipped.append((part, name, mark))
        folder = Path(order.folder)
        if folder.exists():
            parcels[node.RUN] = self.ray.put(pack(folder))
        config, sources = resolve_data(order.config)
        errand = {
            "id": order.id, "config": config, "shipped": shipped, "sources": sources, "plugins": self.plugins,
            "is_on_gpu": self.is_on_gpu, "versions": node.get_versions(),
        }  # fmt: skip
        num_gpus = int(self.is_on_gpu)
        train = self.train.options(num_cpus=config["threads"], num_gpus=num_gpus, name=f"run {order.id}")
        self.tasks[train.remote(errand, list(parcels), *parcels.values())] = _Task(order)

    def stop(self) -> None:
        """Ask all runs to write a checkpoint and to end; tasks without a process are cancelled."""
        affinity = importlib.import_module("ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy
        for reference, task in self.tasks.items():
            if task.process is None:
                self.ray.cancel(reference)
                continue
            place = affinity(node_id=task.node, soft=False)
            stop = self.ray.remote(num_cpus=0, max_retries=0, scheduling_strategy=place)(node.stop_process)
            stop.remote(*task.process)

    def receive(self) -> list[RunEvent]:
        """Return new events; wait for them for a short while."""
        ready, _ = self.ray.wait(list(self.tasks), timeout=POLL)
        events = [self._read_event(reference, self.tasks[reference]) for reference in ready]
        return [event for event in events if event is not None]

    def close(self, *, at_once: bool) -> None:
        """Forget all tasks, if at once after ending those that still run."""
        if at_once:
            for reference in self.tasks:
                self.ray.cancel(reference, force=True)
        self.tasks.clear()

    def _read_event(self, reference: Any, task: _Task) -> RunEvent | None:
        """Return the next event of a task, None if its message is not an event."""
        id = task.order.id
        try:
            message: dict[str, Any] = self.ray.get(next(reference))
        except StopIteration:
            del self.tasks[reference]
            return None if task.has_ended else RunEvent(id, "lost", "its task ended without a message")
        except self.ray.exceptions.RayError as error:
            del self.tasks[reference]
            return None if task.has_ended else self._describe_error(id, error, task.node)
        if "refusal" in message:
            raise StudyError(message["refusal"])
        if "process" in message:
            task.process = message["process"]
            return None
        task.node = message.pop("node", task.node)
        if "folder" in message:
            task.has_ended = True
            unpack(message.pop("folder"), Path(task.order.folder))
            update_paths(Path(task.order.folder), task.order.config)
        return RunEvent(**message)

    def _describe_error(self, id: str, error: Any, place: str) -> RunEvent:
        errors = self.ray.exceptions
        if isinstance(error, errors.TaskCancelledError):
            return RunEvent(id, "interrupted")
        if isinstance(error, errors.OutOfMemoryError):
            return RunEvent(id, "failed", "its node has no memory left for it")
        if isinstance(error, errors.RayTaskError):
            return RunEvent(id, "failed", find_reason(error))
        # Ray ends a process whose own node is gone, without a message.
        return RunEvent(id, "lost", OWN_NODE if place == self.node else type(error).__name__)


@contextmanager
def connect_workers(on: str, threads: int) -> Iterator[None]:
    """Connect to the cluster on which runs are trained; local runs need no connection."""
    if on not in PLACES:
        raise StudyError(f"a study runs on local or ray, not on '{on}'{closest(on, PLACES)}")
    if on == "local":
        yield
        return
    ray = load_ray()
    is_ours = not ray.is_initialized()
    if is_ours:
        address = find_address()
        # A failing connection takes minutes and cannot be interrupted, so another process tries first.
        check_answer(address)
        logging.getLogger("ray").setLevel(logging.CRITICAL)
        ray.init(address=address, log_to_driver=False, logging_level=logging.CRITICAL)
    try:
        check_room(ray, threads)
        yield
    finally:
        if is_ours:
            ray.shutdown()


def load_ray() -> Any:
    """Import Ray, if it is installed and new enough."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    try:
        ray = importlib.import_module("ray")
    except ImportError as error:
        raise StudyError("Ray is not installed; `pip install 'attnlab[ray]'` installs it") from error
    number = str(ray.__version__)
    if tuple(int(part) for part in number.split(".")[:2]) < OLDEST:
        raise StudyError(f"Ray is {number}, and 2.54 is needed; `pip install --upgrade 'attnlab[ray]'` installs it")
    return ray


def find_address() -> str:
    """Return the address of the cluster: RAY_ADDRESS, or the cluster of this machine."""
    address = os.environ.get("RAY_ADDRESS", "") or "auto"
    if address == "auto":
        return address
    host, _, port = address.rpartition(":")
    if "://" in address or not host or not is_whole_number(port):
        raise StudyError(f"RAY_ADDRESS is '{address}', and HOST:PORT of a cluster's head is needed, or auto")
    try:
        socket.create_connection((host, int(port)), REACH).close()
    except (OSError, OverflowError) as error:
        raise StudyError(f"no Ray cluster answers at RAY_ADDRESS={address} ({error}); {ADVICE}") from error
    return address


def check_answer(address: str) -> None:
    """Refuse an address at which no cluster answers."""
    where = "on this machine" if address == "auto" else f"at RAY_ADDRESS={address}"
    try:
        command = [sys.executable, "-P", "-c", CONNECT, address]
        result = subprocess.run(command, timeout=PATIENCE, capture_output=True, text=True, check=False)
    except subprocess.TimeoutExpired as error:
        raise StudyError(f"no Ray cluster answers {where} within {PATIENCE:.0f} seconds; {ADVICE}") from error
    if result.returncode:
        lines = [line for line in result.stderr.splitlines() if "Error: " in line]
        why = lines[-1].split("Error: ", 1)[1] if lines else f"status {result.returncode}"
        raise StudyError(f"no Ray cluster answers {where} ({why}); {ADVICE}")


def check_room(ray: Any, threads: int) -> None:
    """Refuse runs that no node has enough CPUs for."""
    most = max((node["Resources"].get("CPU", 0) for node in ray.nodes() if node["Alive"]), default=0)
    if most < threads:
        raise StudyError(
            f"a run with --threads {threads} needs as many CPUs on one node, and the largest of the cluster has "
            f"{most:g}; take fewer threads, or add a node"
        )


def resolve_data(config: dict[str, Any]) -> tuple[dict[str, Any], list[tuple[str, str | None, str]]]:
    """Return a config with absolute paths of its data, and the name, split and hash of each source."""
    data = dict(config["data"])
    sources = []
    for split in ("train", "dev"):
        name = data[split]
        if name is not None and expand_path(name).exists():
            name = data[split] = str(expand_path(name).resolve())
        if name is None and choose_split(data["train"], split) is not None:
            name = data["train"]  # what a run is evaluated on by default
        if name is not None:
            sources.append((name, choose_split(name, split), node.hash_split(name, choose_split(name, split))))
    return {**config, "data": data}, sources


def find_reason(error: Any) -> str:
    """Return why a task failed in one line; raise an error for a node without attnlab, where every run would fail."""
    if isinstance(error.cause, AttnlabError):
        return str(error.cause)
    if "No module named 'attnlab" in str(error):
        raise StudyError("a node has no attnlab; `pip install 'attnlab[ray]'` on every node installs it") from error
    return str(error).strip().splitlines()[-1]
