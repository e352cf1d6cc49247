"""The figures the field publishes, from plain texts, classes and numbers: no models, no files.

`answers` compares two answers, `squad` averages as the official scripts, `classes` is accuracy, F1, Matthews' and
collapse, `correlation` is Pearson's and Spearman's.
"""

from . import answers, classes, correlation, squad

__all__ = ["answers", "classes", "correlation", "squad"]
