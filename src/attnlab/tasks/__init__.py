"""Tasks: examples, loss and metric of MLM, CLM, SQuAD, GLUE, BoolQ, any labelled text, and probes.

Names load on first use, so that the names of figures are read without torch.
"""

from typing import TYPE_CHECKING

from attnlab.lazy import load_on_first_use

if TYPE_CHECKING:
    from . import metrics
    from .batch import Batch, Feature
    from .catalog import TASKS, load
    from .classification import Classification, Columns, LabelledText, Labels, Range
    from .language import Clm, LineLoss, Mlm, TextLine, sample, sentence_losses
    from .predictions import read_predictions
    from .probes import ProbeTask
    from .scores import LOG_FIGURES, Reference, Scores
    from .squad import NullThreshold, Search, Squad, SquadAnswer, SquadQuestion
    from .task import Task

__all__ = [
    "LOG_FIGURES", "TASKS", "Batch", "Classification", "Clm", "Columns", "Feature", "LabelledText", "Labels",
    "LineLoss", "Mlm", "NullThreshold", "ProbeTask", "Range", "Reference", "Scores", "Search", "Squad", "SquadAnswer",
    "SquadQuestion", "Task", "TextLine", "load", "metrics", "read_predictions", "sample", "sentence_losses",
]  # fmt: skip

__getattr__, __dir__ = load_on_first_use(__name__)
