"""What is reported of study files with mistakes."""

from pathlib import Path
from typing import Any

import pytest

from attnlab.errors import StudyError
from attnlab.studies.file.reading import read_design


def line_with(text: str, part: str) -> int:
    """Return the number of the line that holds a text."""
    return next(number for number, line in enumerate(text.split("\n"), start=1) if part in line)


def refusal(file: Path, text: str, budget: str | None = None, assign: dict[str, Any] | None = None) -> str:
    """Return the error of a file that is not a study."""
    file.write_text(text, encoding="utf-8")
    with pytest.raises(StudyError) as caught:
        read_design(file, budget, assign)
    return str(caught.value)
