"""The same questions put to a whole Hugging Face model: a mechanism may be sound, and what it was put into not."""

from . import gradients, leak, numerics, padding, prefix  # noqa: F401  (each registers its check)
from .subject import ModelSubject

__all__ = ["ModelSubject"]
