"""A run on a node of a cluster: its files are unpacked into a folder there, and the folder of the run is sent back.

A Ray worker imports only this module; as on one machine, a server process forks a process for each run.
"""

import fcntl
import functools
import hashlib
import importlib
import json
import os
import platform
import signal
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from attnlab.data import open_source
from attnlab.errors import DataError, StudyError

from .parcel import LOCK, pack, remove, unpack, update_paths
from .workers import LocalWorkers, RunEvent, RunOrder

PREFIX = "attnlab-run-"
ABANDONED = 60.0
"""Seconds after which a folder that is not locked belongs to a process that was killed."""
RUN, PLUGINS = "run", "plugins"
DEVICES = "CUDA_VISIBLE_DEVICES"
PACKAGES = ("attnlab", "torch", "transformers")
CODE = Path(__file__).parents[2]
CODE_SUFFIXES = (".py", ".cpp")
_WORKERS: dict[tuple[Any, str | None], LocalWorkers] = {}
"""The server of this process, which is started once for all runs."""


def train_on_node(errand: Mapping[str, Any], parcels: Sequence[str], *contents: bytes) -> Iterator[dict[str, Any]]:
    """Train a run; yield its events as plain data, the last with the run's folder. parcels: the names of contents."""
    node = importlib.import_module("ray").get_runtime_context().get_node_id()
    id, name = errand["id"], f"{platform.node()}:{node[:8]}"
    if wrong := compare_versions(errand["versions"], get_versions()):
        yield {"refusal": f"node {name} has {wrong}; install the same on every node"}
        return
    yield {"node": node, **asdict(RunEvent(id, "started", name))}
    check_sources(errand["sources"], name)
    remove_abandoned()
    with make_scratch() as folder:
        for what, content in zip(parcels, contents, strict=True):
            unpack(content, folder / what)
        for event in _train(_find_workers(errand, folder), prepare_order(errand, folder)):
            if event.pid is not None:
                yield {"process": (event.pid, os.getpgid(event.pid))}
            else:
                yield {**asdict(event), "folder": pack(folder / RUN)}


def stop_process(process: int, group: int) -> None:
    """Ask the process of a run on this node to stop, if it is still that one."""
    with suppress(ProcessLookupError):
        if os.getpgid(process) == group:
            os.kill(process, signal.SIGTERM)


def prepare_order(errand: Mapping[str, Any], folder: Path) -> RunOrder:
    """Return the order for a run whose files are in a folder, and write their paths into what the run left before."""
    config = json.loads(json.dumps(errand["config"]))
    for part, name, mark in errand["shipped"]:
        config[part][name] = f"{folder / name}{mark}"
    update_paths(folder / RUN, config)
    return RunOrder(errand["id"], str(folder / RUN), config)


def check_sources(sources: Sequence[tuple[str, str | None, str]], node: str) -> None:
    """Refuse data that is missing on this node, or is not what the study was planned with."""
    for name, split, expected in sources:
        try:
            actual = hash_split(name, split)
        except DataError as error:
            raise StudyError(f"on node {node}: {error}; a study's data has the same path on every node") from error
        if actual != expected:
            raise StudyError(f"on node {node}, {name} has another content than where the study was started; copy it")


@functools.cache
def hash_split(name: str, split: str | None) -> str:
    """Return the hash of a source, computed once in a process."""
    return open_source(name, split=split).hash


@functools.cache
def get_versions() -> dict[str, str]:
    """Return the versions that a result depends on; that of attnlab includes a hash of its code."""
    total = hashlib.sha256()
    for file in sorted(CODE.rglob("*")):
        if file.suffix in CODE_SUFFIXES:
            total.update(f"{file.relative_to(CODE)} {hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    versions = {name: version(name) for name in PACKAGES}
    return {**versions, "attnlab": f"{versions['attnlab']} (code {total.hexdigest()[:8]})"}


def compare_versions(wanted: Mapping[str, str], actual: Mapping[str, str]) -> str:
    """Say which versions differ, or return an empty text."""
    wrong = [name for name in wanted if actual.get(name) != wanted[name]]
    return ", ".join(f"{name} {actual.get(name)} where the study has {wanted[name]}" for name in wrong)


@contextmanager
def make_scratch() -> Iterator[Path]:
    """Make a folder for a run, locked by this process and removed when the run has ended."""
    with tempfile.TemporaryDirectory(prefix=PREFIX) as name, (Path(name) / LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield Path(name)


def remove_abandoned() -> None:
    """Remove folders of runs whose process was killed: they are not locked."""
    for lock in Path(tempfile.gettempdir()).glob(f"{PREFIX}*/{LOCK}"):
        with suppress(OSError), lock.open("r+") as opened:  # of another process, or just removed
            if time.time() - lock.stat().st_mtime > ABANDONED:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove(lock.parent)


def _train(workers: LocalWorkers, order: RunOrder) -> Iterator[RunEvent]:
    try:
        workers.send(order)
        while True:
            for event in workers.receive():
                yield event
                if event.kind != "started":
                    return
    except BaseException:
        _WORKERS.clear()
        workers.close(at_once=True)
        raise


def _find_workers(errand: Mapping[str, Any], folder: Path) -> LocalWorkers:
    """Return the server of this process; a new one reads plugins from a folder."""
    if not errand["is_on_gpu"]:
        os.environ[DEVICES] = ""  # all nodes compute on the same kind of device
    key = errand["plugins"], os.environ.get(DEVICES)
    if key not in _WORKERS:
        for other in _WORKERS.values():
            other.close(at_once=True)
        _WORKERS.clear()
        files = [folder / PLUGINS / str(number) / name for number, (name, _) in enumerate(errand["plugins"])]
        for file, (_, content) in zip(files, errand["plugins"], strict=True):
            file.parent.mkdir(parents=True)
            file.write_bytes(content)
        _WORKERS[key] = LocalWorkers([str(file) for file in files])
    return _WORKERS[key]
