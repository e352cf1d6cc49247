"""Probes as tasks: generated sequences, and how many of the positions that are asked a model gets right."""

from .compression import CompressionTask
from .task import ProbeExample, ProbeTask

__all__ = ["CompressionTask", "ProbeExample", "ProbeTask"]
