"""A registry to play in: what a test registers is gone when it ends."""

from collections.abc import Iterator

import pytest

from attnlab.mechanisms import REGISTRY


@pytest.fixture
def own_stages() -> Iterator[None]:
    before = dict(REGISTRY)
    yield
    REGISTRY.clear()
    REGISTRY.update(before)
