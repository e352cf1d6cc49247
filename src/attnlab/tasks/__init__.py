"""One question asked of a model: examples, loss, metric. MLM, CLM, SQuAD, GLUE, BoolQ, any labelled text, probes.

Names load on first use: the names of figures are read without torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnlab.lazy import load_on_first_use

if TYPE_CHECKING:
    from . import metrics
    from .batch import Batch, Feature
    from .catalog import TASKS, load
    from .classification import Classification, Columns, LabelledText, Labels, Range
    from .language import Clm, Line, LineLoss, Mlm, sample, sentence_losses
    from .predictions import read_predictions
    from .probes import ProbeTask
    from .scores import LOG_FIGURES, Reference, Scores
    from .squad import NullThreshold, Search, Squad, SquadAnswer, SquadQuestion
    from .task import Task

HOMES = {
    "metrics": "",
    "Batch": "batch", "Feature": "batch",
    "TASKS": "catalog", "load": "catalog",
    "Classification": "classification", "Columns": "classification", "LabelledText": "classification",
    "Labels": "classification", "Range": "classification",
    "Clm": "language", "Line": "language", "LineLoss": "language", "Mlm": "language", "sample": "language",
    "sentence_losses": "language",
    "read_predictions": "predictions",
    "ProbeTask": "probes",
    "LOG_FIGURES": "scores", "Reference": "scores", "Scores": "scores",
    "SquadAnswer": "squad", "NullThreshold": "squad", "SquadQuestion": "squad", "Search": "squad", "Squad": "squad",
    "Task": "task",
}  # fmt: skip
"""The file of each public name; a submodule that is public itself has none."""

__all__ = [
    "LOG_FIGURES",
    "TASKS",
    "Batch",
    "Classification",
    "Clm",
    "Columns",
    "Feature",
    "LabelledText",
    "Labels",
    "Line",
    "LineLoss",
    "Mlm",
    "NullThreshold",
    "ProbeTask",
    "Range",
    "Reference",
    "Scores",
    "Search",
    "Squad",
    "SquadAnswer",
    "SquadQuestion",
    "Task",
    "load",
    "metrics",
    "read_predictions",
    "sample",
    "sentence_losses",
]  # fmt: skip

__getattr__, __dir__ = load_on_first_use(__name__, HOMES)
