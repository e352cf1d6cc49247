"""The connection to a Ray cluster that is there already: found by RAY_ADDRESS, never started here."""

from __future__ import annotations

import importlib
import logging
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from attnlab.errors import StudyError, closest

PLACES = ("local", "ray")
"""Where runs can be trained."""
OLDEST = (2, 54)
PATIENCE = 20.0
"""Seconds that a cluster has to answer."""
REACH = 3.0
"""Seconds that its port has to open."""
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0", "RAY_DEDUP_LOGS_SKIP_REGEX": ".",
}  # fmt: skip
"""What Ray reads when it is imported; the last is what leaves out the log of a lost node, which it would print."""
CONNECT = "import sys, ray; ray.init(address=sys.argv[1], log_to_driver=False)"
ADVICE = "start one with `ray start --head` on this machine, or set RAY_ADDRESS=HOST:PORT to that of its head"


@contextmanager
def connected(on: str, threads: int) -> Iterator[None]:
    """Be connected to where runs are trained; on this machine there is nothing to do."""
    if on not in PLACES:
        raise StudyError(f"a study runs on local or ray, not on '{on}'{closest(on, PLACES)}")
    if on == "local":
        yield
        return
    ray = load_ray()
    is_ours = not ray.is_initialized()
    if is_ours:
        address = find_address()
        # One that comes to nothing would try for minutes and cannot be told to give up: another process finds out.
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
    """Import Ray, where it is there and new enough."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    try:
        ray = importlib.import_module("ray")
    except ImportError as error:
        raise StudyError("Ray is not installed; `pip install 'attnlab[ray]'` installs it") from error
    number = str(ray.__version__)
    if tuple(int(part) for part in number.split(".")[:2]) < OLDEST:
        raise StudyError(f"Ray is {number}, and 2.54 is needed; `pip install --upgrade 'attnlab[ray]'` brings it")
    return ray


def find_address() -> str:
    """Return the address of the cluster: what the environment says, or the one that this machine is a node of."""
    address = os.environ.get("RAY_ADDRESS", "") or "auto"
    if address == "auto":
        return address
    host, _, port = address.rpartition(":")
    if "://" in address or not host or not port.isdigit():
        raise StudyError(f"RAY_ADDRESS is '{address}', and HOST:PORT of a cluster's head is needed, or auto")
    try:
        socket.create_connection((host, int(port)), REACH).close()
    except (OSError, OverflowError) as error:
        raise StudyError(f"no Ray cluster answers at RAY_ADDRESS={address} ({error}); {ADVICE}") from error
    return address


def check_answer(address: str) -> None:
    """Refuse an address where no cluster answers that this machine is a node of."""
    where = "on this machine" if address == "auto" else f"at RAY_ADDRESS={address}"
    try:
        tried = subprocess.run(
            [sys.executable, "-c", CONNECT, address], timeout=PATIENCE, capture_output=True, text=True, check=False
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise StudyError(f"no Ray cluster answers {where} within {PATIENCE:.0f} seconds; {ADVICE}") from error
    if tried.returncode:
        lines = [line for line in tried.stderr.splitlines() if "Error: " in line]
        why = lines[-1].split("Error: ", 1)[1] if lines else f"status {tried.returncode}"
        raise StudyError(f"no Ray cluster answers {where} ({why}); {ADVICE}")


def check_room(ray: Any, threads: int) -> None:
    """Refuse runs that no node has CPUs for: they would wait for ever."""
    most = max((node["Resources"].get("CPU", 0) for node in ray.nodes() if node["Alive"]), default=0)
    if most < threads:
        raise StudyError(
            f"a run with --threads {threads} needs as many CPUs on one node, and the largest of the cluster has "
            f"{most:g}; take fewer threads, or add a node"
        )
