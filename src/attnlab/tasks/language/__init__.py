"""Language modelling: masked, causal, honest about the past, one sentence at a time, and samples."""

from .clm import Clm
from .line import LineLoss, TextLine
from .mlm import Mlm
from .sentences import sample, sentence_losses

__all__ = ["Clm", "LineLoss", "Mlm", "TextLine", "sample", "sentence_losses"]
