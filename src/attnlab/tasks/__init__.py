"""One question asked of a model: examples, loss, metric. MLM, CLM, SQuAD, GLUE, BoolQ, any labelled text, probes."""

from . import metrics
from .batch import Batch, Feature
from .catalog import TASKS, load
from .classification import Classification, Columns, LabelledText, Labels, Range
from .language import Clm, Line, LineLoss, Mlm, sample, sentence_losses
from .predictions import read_predictions
from .probes import Probe
from .scores import LOG_FIGURES, Reference, Scores
from .squad import Answer, NullThreshold, Question, Search, Squad
from .task import Task

__all__ = [
    "LOG_FIGURES", "TASKS", "Answer", "Batch", "Classification", "Clm", "Columns", "Feature", "LabelledText",
    "Labels", "Line", "LineLoss", "Mlm", "NullThreshold", "Probe", "Question", "Range", "Reference", "Scores",
    "Search", "Squad", "Task", "load", "metrics", "read_predictions", "sample", "sentence_losses",
]  # fmt: skip
