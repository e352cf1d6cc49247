"""A run on a node of a cluster: what it needs is laid out in a folder there, and what it leaves is sent back.

This is all that a worker of Ray imports: as on one machine, a server beside it forks a process for each run.
"""

from __future__ import annotations

import fcntl
import functools
import importlib
import json
import os
import platform
import signal
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from attnlab.data import open_source
from attnlab.errors import DataError, StudyError

from .address import readdressed
from .dispatch import Dispatch
from .parcel import PASSING, pack, remove, unpack
from .versions import differences, versions

PREFIX = "attnlab-run-"
ABANDONED = 60.0
"""Seconds after which a folder that nobody holds is one whose process was killed."""
RUN, PLUGINS = "run", "plugins"
DEVICES = "CUDA_VISIBLE_DEVICES"
_SERVERS: dict[tuple[Any, str | None], Dispatch] = {}
"""The server of this process: its imports are paid for once, however many runs come here."""


def work(errand: Mapping[str, Any], parcels: Sequence[str], *contents: bytes) -> Iterator[dict[str, Any]]:
    """Train a run; yield where it is, its process, and how that ended with the folder. parcels: what contents are."""
    node = importlib.import_module("ray").get_runtime_context().get_node_id()
    id, name = errand["order"]["id"], f"{platform.node()}:{node[:8]}"
    yield {"id": id, "node": name, "place": node}
    wrong = differences(errand["versions"], versions())
    if wrong:
        yield {"id": id, "refusal": f"node {name} has {wrong}; install the same on every node"}
        return
    check_sources(errand["sources"], name)
    sweep()
    with scratch() as folder:
        for what, content in zip(parcels, contents, strict=True):
            unpack(content, folder / what)
        order = order_of(errand, folder)
        for answer in answers(server_of(errand, folder), order):
            if "status" in answer:
                yield {**answer, "folder": pack(folder / RUN)}
            else:
                yield {**answer, "place": node, "group": os.getpgid(answer["pid"])}


def answers(server: Dispatch, order: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Have a run trained; yield what the server says of it, up to its status."""
    try:
        server.send(order)
        while True:
            for answer in server.hear():
                yield answer
                if "status" in answer:
                    return
    except BaseException:
        _SERVERS.clear()
        server.close(at_once=True)
        raise


def stop(process: int, group: int) -> None:
    """Ask the process of a run on this node to stop, where it is still that one."""
    with suppress(ProcessLookupError):
        if os.getpgid(process) == group:
            os.kill(process, signal.SIGTERM)


def server_of(errand: Mapping[str, Any], folder: Path) -> Dispatch:
    """Return the server of this worker; one that starts reads the user's own stages from a folder."""
    if not errand["is_on_gpu"]:
        os.environ[DEVICES] = ""  # a node that has a GPU computes what the others do
    key = errand["plugins"], os.environ.get(DEVICES)
    if key not in _SERVERS:
        for other in _SERVERS.values():
            other.close(at_once=True)
        _SERVERS.clear()
        files = [folder / PLUGINS / str(number) / name for number, (name, _) in enumerate(errand["plugins"])]
        for file, (_, content) in zip(files, errand["plugins"], strict=True):
            file.parent.mkdir(parents=True)
            file.write_bytes(content)
        _SERVERS[key] = Dispatch([str(file) for file in files])
    return _SERVERS[key]


def order_of(errand: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the order for a run whose things are in a folder, and let what it left elsewhere say so too."""
    config = json.loads(json.dumps(errand["config"]))
    for part, name, mark in errand["shipped"]:
        config[part][name] = f"{folder / name}{mark}"
    file = folder / RUN / "config.json"
    if file.exists():
        file.write_text(json.dumps(readdressed(json.loads(file.read_text("utf-8")), config)), encoding="utf-8")
    return {**errand["order"], "folder": str(folder / RUN), "config": config}


def check_sources(sources: Sequence[tuple[str, str | None, str]], node: str) -> None:
    """Refuse data that is missing here, or is not what the study was planned with."""
    for name, split, digest in sources:
        try:
            found = digest_of(name, split)
        except DataError as error:
            raise StudyError(f"on node {node}: {error}; a study's data has the same path on every node") from error
        if found != digest:
            raise StudyError(f"on node {node}, {name} has another content than where the study was started; copy it")


@functools.cache
def digest_of(name: str, split: str | None) -> str:
    """Return the hash of a source, which a worker takes once."""
    return open_source(name, split=split).hash


@contextmanager
def scratch() -> Iterator[Path]:
    """Make a folder for a run, held by this process and removed when the run has ended."""
    with tempfile.TemporaryDirectory(prefix=PREFIX) as name, (Path(name) / PASSING).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield Path(name)


def sweep() -> None:
    """Remove folders of runs whose process was killed: nobody holds them."""
    for lock in Path(tempfile.gettempdir()).glob(f"{PREFIX}*/{PASSING}"):
        with suppress(OSError), lock.open("r+") as opened:  # another's, or just removed
            if time.time() - lock.stat().st_mtime > ABANDONED:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove(lock.parent)
