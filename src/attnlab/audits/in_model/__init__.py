"""The same checks for a whole Hugging Face model: a sound mechanism may be installed in a model that is not."""

from . import gradients, leak, numerics, padding, positions, prefix  # noqa: F401  (each registers its check)
from .subject import ModelSubject

__all__ = ["ModelSubject"]
