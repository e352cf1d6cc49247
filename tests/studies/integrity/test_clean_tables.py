"""Clean tables raise no findings."""

from pathlib import Path

import pytest

from attnlab.studies.integrity import IntegrityKind
from tests.studies.integrity.clean_tables import KINDS, count_findings


@pytest.mark.parametrize("kind", KINDS)
def test_clean_tables_raise_no_findings(kind: IntegrityKind, tmp_path: Path) -> None:
    assert count_findings(kind, 60, tmp_path) == 0
