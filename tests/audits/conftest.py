"""Fixtures of the audits' tests."""

from collections.abc import Iterator

import pytest

from attnlab.audits import CHECKS


@pytest.fixture
def own_checks() -> Iterator[None]:
    """Forget the checks a test registers when it ends."""
    before = {kind: dict(checks) for kind, checks in CHECKS.items()}
    yield
    for kind, checks in before.items():
        CHECKS[kind].clear()
        CHECKS[kind].update(checks)
