"""A study whose ledger holds given results."""

from pathlib import Path

import pytest

from .recorded_study import RecordedStudy


@pytest.fixture
def study(tmp_path: Path) -> RecordedStudy:
    return RecordedStudy(tmp_path)
