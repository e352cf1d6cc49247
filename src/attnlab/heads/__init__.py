"""What did a model learn? The attention weights of its heads on a text, as numbers and as a picture."""

from .maps import AttentionMaps, show

__all__ = ["AttentionMaps", "show"]
