"""A study file for the tests of this folder."""

from pathlib import Path

import pytest

from ..samples import STUDY


@pytest.fixture
def file(tmp_path: Path) -> Path:
    place = tmp_path / "study.toml"
    place.write_text(STUDY, encoding="utf-8")
    return place
