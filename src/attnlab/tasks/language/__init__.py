"""Language modelling: masked and causal (with leak-free perplexity), sentence by sentence, and samples."""

from .clm import Clm
from .line import LineLoss, TextLine
from .mlm import Mlm
from .sentences import sample, sentence_losses

__all__ = ["Clm", "LineLoss", "Mlm", "TextLine", "sample", "sentence_losses"]
