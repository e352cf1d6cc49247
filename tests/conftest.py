"""Settings and fixtures every test shares."""

import os
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from huggingface_hub import close_session, constants
from hypothesis import settings

# Some virtual machines announce AMX and then fault on it: torch's bf16 products end the process there. Bounding the
# instruction set before torch is imported costs the tests nothing ('attnlab doctor' looks for this).
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

from attnlab.audits import CHECKS
from attnlab.mechanisms import MIXERS, REGISTRY, mixer
from tests.mixers import CLASSES
from tests.sampling import IS_SOAK

# Two workers on two cores, and kernels that compile on first use: a wall-clock deadline fails by chance.
# The same examples at every `make test`, so that it fails only for a change; new ones at every `make soak`.
settings.register_profile("attnlab", deadline=None, derandomize=not IS_SOAK)
settings.load_profile("attnlab")


LONGEST = (
    "studies/test_kills.py", "studies/test_planted.py", "studies/test_tutorial.py", "install/test_ecosystem.py",
    "training/loop/test_ranks.py", "training/test_kills.py", "install/test_catalog.py", "cli/test_catalog.py",
)  # fmt: skip
"""Files of half a minute and more. Two workers share the files: one that is started last would be waited for."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start with the longest files."""
    ranks = {Path(__file__).parent / name: rank for rank, name in enumerate(LONGEST)}
    items.sort(key=lambda item: ranks.get(item.path, len(ranks)))


@pytest.fixture
def own_stages() -> Iterator[None]:
    """Forget the stages a test registers when it ends."""
    before, mixers = dict(REGISTRY), dict(MIXERS)
    yield
    for registry, names in ((REGISTRY, before), (MIXERS, mixers)):
        registry.clear()
        registry.update(names)  # type: ignore[arg-type]


@pytest.fixture
def mixers(own_stages: None) -> None:
    """Register the mixers of tests/mixers.py."""
    for name, cls in CLASSES.items():
        mixer(name)(cls)


@pytest.fixture
def own_checks() -> Iterator[None]:
    """Forget the checks a test registers when it ends."""
    before = {kind: dict(checks) for kind, checks in CHECKS.items()}
    yield
    for kind, checks in before.items():
        CHECKS[kind].clear()
        CHECKS[kind].update(checks)


class NotebookKernel:
    """What the kernel of a notebook offers, and all that is displayed in it."""

    def __init__(self) -> None:
        self.displays: list[str] = []
        self.num_updates = 0

    def display(self, content: str, display_id: bool) -> Any:
        assert display_id
        self.displays.append(content)
        return SimpleNamespace(update=self.update)

    def update(self, content: str) -> None:
        self.displays[-1] = content
        self.num_updates += 1


@pytest.fixture
def notebook_kernel(monkeypatch: pytest.MonkeyPatch) -> NotebookKernel:
    """Run a test as if it were a cell of a notebook."""
    kernel = NotebookKernel()
    shell = SimpleNamespace(kernel=kernel)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(HTML=str, display=kernel.display))
    return kernel


@pytest.fixture
def unreachable_hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bytes]]:
    """Put a server in place of the hub that ends every connection without an answer; return the requests for files."""
    requests: list[bytes] = []
    server = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        while True:
            connection, _ = server.accept()
            with connection:
                request = connection.recv(1000)
            if not serving:
                return
            if not request.startswith(b"GET /api/agent-harnesses"):  # which the client itself asks for, once a process
                requests.append(request)

    serving = [True]
    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    endpoint = f"http://127.0.0.1:{server.getsockname()[1]}"
    template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(constants.ENDPOINT, endpoint)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "ENDPOINT", endpoint)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    close_session()  # a session keeps the proxies it was made with
    yield requests
    serving.clear()
    socket.create_connection(server.getsockname()).close()
    thread.join()
    server.close()
    close_session()
