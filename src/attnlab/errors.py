"""The exceptions of attnlab. The command line prints one as a single message and exits with status 2.

AttnlabError
├── MechanismError      an invalid line, stage or argument of a mechanism
├── ShapeError          tensors or a mask whose shapes do not match
├── ParameterError      learned parameters that are missing, unknown or have the wrong shape
├── KernelError         a kernel that cannot compute the request
├── InstallError        a model that cannot take, save or load a mechanism
├── PretrainedError     a folder or a name of the hub that transformers cannot load
├── DataError           an invalid source, tokenizer or token file
├── TaskError           examples, predictions or a model that a task cannot work with
├── TrainingError       a run that cannot start, resume or be read
├── StudyError          an invalid study file, study folder or ledger
├── StatisticsError     scores or settings that cannot be analysed
└── RequestError        an invalid option or file
AttnlabWarning          a correct result that is slower or different from what one would expect
"""

import difflib
import re
from collections.abc import Iterable


class AttnlabError(Exception):
    """Base class of the exceptions that attnlab raises."""


class MechanismError(AttnlabError):
    """An invalid line, stage or argument of a mechanism."""


class ShapeError(AttnlabError):
    """Tensors or a mask whose shapes do not match."""


class ParameterError(AttnlabError):
    """Learned parameters that are missing, unknown or have the wrong shape."""


class KernelError(AttnlabError):
    """A kernel that cannot compute the request."""


class InstallError(AttnlabError):
    """A model that cannot take, save or load a mechanism."""


class PretrainedError(AttnlabError):
    """A folder or a name of the hub that transformers cannot load."""


class DataError(AttnlabError):
    """An invalid source, tokenizer or token file; the message names the file and the row."""


class TaskError(AttnlabError):
    """Examples, predictions or a model that a task cannot work with."""


class StudyError(AttnlabError):
    """An invalid study file, study folder or ledger."""


class StatisticsError(AttnlabError):
    """Scores or settings that cannot be analysed."""


class TrainingError(AttnlabError):
    """A run that cannot start, resume or be read."""


class RequestError(AttnlabError):
    """An invalid option or file."""


class AttnlabWarning(UserWarning):
    """A correct result that is slower or different from what one would expect."""


def closest(word: str, known: Iterable[str]) -> str:
    """Return ", did you mean 'x'?" for the nearest known word, or an empty string."""
    by_lower_case = {name.lower(): name for name in known}
    letters = [name for name in by_lower_case if len(name) == 1 and name.isalpha()]
    if len(word) == 1 and word.isalpha() and len(letters) == 1:
        # Likeness is the share of common letters, by which 'm' is nearer to 'sum' than to 'n'.
        return f", did you mean '{by_lower_case[letters[0]]}'?"
    # Below 0.6 a suggestion is rarely what was meant; of two letters, such as f2 for f1, one may be wrong.
    matches = difflib.get_close_matches(word.lower(), by_lower_case, n=1, cutoff=0.6 if len(word) > 2 else 0.5)
    return f", did you mean '{by_lower_case[matches[0]]}'?" if matches else ""


def remove_suggestion(message: str) -> str:
    """Return a message without what `closest` adds, for words that were right when they were written."""
    return re.sub(r", did you mean '[^']*'\?", "", message)
