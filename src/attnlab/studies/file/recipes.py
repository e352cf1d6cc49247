"""The studies that come with attnlab, by name: TOML files in the folder `recipes` of the package."""

import tomllib
from pathlib import Path
from typing import Any

from attnlab.errors import StudyError, closest
from attnlab.inputs import expand_path

from .smoke_test import ANSWERED_BY

FOLDER = Path(__file__).parents[2] / "recipes"
FIRST = "quickstart"
SMALLEST = "smoke"
"""The smallest budget of every recipe."""


def list_recipes() -> dict[str, Path]:
    """Return the file of each recipe, the first one to try first."""
    files = sorted(FOLDER.glob("*.toml"), key=lambda file: (file.stem != FIRST, file.stem))
    return {file.stem: file for file in files}


def find_study(text: str) -> Path:
    """Return the file that a path or the name of a recipe stands for; a file of that name has precedence."""
    known = list_recipes()
    path = expand_path(text)
    if path.is_file() or (text not in known and ("." in text or "/" in text)):
        return path
    if text in known:
        return known[text]
    advice = f"Give a .toml file, or one of: {', '.join(known)}"
    raise StudyError(f"'{text}' is neither a study file nor a recipe{closest(text, known) or '.'} {advice}")


def read_purpose(file: Path) -> str:
    """Return the purpose of a recipe: the comment that its file begins with."""
    return file.read_text(encoding="utf-8").splitlines()[0].removeprefix("#").strip()


def read_budgets(file: Path) -> dict[str, dict[str, Any]]:
    """Return the budgets of a recipe, the smallest first."""
    return dict(tomllib.loads(file.read_text(encoding="utf-8"))["budgets"])


def find_answering_budget(file: Path) -> str:
    """Return the smallest budget of a recipe that answers its question."""
    return str(read_budgets(file)[SMALLEST].get(ANSWERED_BY, SMALLEST))
