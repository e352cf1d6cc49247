"""Probes as tasks: generated sequences, and how many of the positions that are asked a model gets right."""

from .compression import Compressed
from .task import Generated, Probe

__all__ = ["Compressed", "Generated", "Probe"]
