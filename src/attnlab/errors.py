"""Every error attnlab raises on purpose. The command line prints one as a single message and exits with 2.

AttnlabError
├── MechanismError      a line, a stage or an argument that is not a mechanism
├── ShapeError          tensors or a mask that do not fit together
├── ParameterError      learned parameters that are missing, unknown or of the wrong shape
├── KernelError         a kernel was asked for something it cannot compute
├── InstallError        a model that cannot take, save or load a mechanism
├── DataError           a source, a tokenizer or a token file that is not what was needed
├── TaskError           examples, predictions or a model that a task cannot work with
├── TrainingError       a run that cannot start, go on or be read
├── StudyError          a study file, a study's folder or its ledger that is not what was needed
├── StatisticsError     scores or settings that no analysis can be made of
└── RequestError        an option or a file that is not what was needed
AttnlabWarning          something still right, but slower or other than one would expect
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class AttnlabError(Exception):
    """Anything attnlab was asked for and cannot do."""


class MechanismError(AttnlabError):
    """A text or a stage that is not a mechanism."""


class ShapeError(AttnlabError):
    """Tensors that do not fit together."""


class ParameterError(AttnlabError):
    """Learned parameters that are missing, unknown or of the wrong shape."""


class KernelError(AttnlabError):
    """A kernel that cannot compute what was asked."""


class InstallError(AttnlabError):
    """A model that cannot take, save or load a mechanism."""


class DataError(AttnlabError):
    """A source, a tokenizer or a token file that is not what was needed; names the file and the row."""


class TaskError(AttnlabError):
    """Examples, predictions or a model that a task cannot work with."""


class StudyError(AttnlabError):
    """A study file, a study's folder or its ledger that is not what was needed."""


class StatisticsError(AttnlabError):
    """Scores or settings that no analysis can be made of."""


class TrainingError(AttnlabError):
    """A run that cannot start, go on or be read."""


class RequestError(AttnlabError):
    """An option or a file that is not what was needed."""


class AttnlabWarning(UserWarning):
    """A result that is right, but slower or other than one would expect."""


def closest(word: str, known: Iterable[str]) -> str:
    """Return ", did you mean 'x'?" for the nearest known word, or an empty string."""
    spelled = {name.lower(): name for name in known}
    matches = difflib.get_close_matches(word.lower(), spelled, n=1, cutoff=0.5)
    return f", did you mean '{spelled[matches[0]]}'?" if matches else ""
