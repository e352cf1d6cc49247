"""The same questions put to a whole Hugging Face model: a mechanism may be sound, and what it was put into not."""

from . import leak, prefix, padding, gradients, numerics  # noqa: F401, I001  (each registers its check, in this order)
from .subject import ModelSubject

__all__ = ["ModelSubject"]
