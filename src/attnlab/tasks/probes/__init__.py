"""Probes as tasks: generated sequences, and the accuracy at their labelled positions."""

from .compression import CompressionTask
from .task import ProbeExample, ProbeTask

__all__ = ["CompressionTask", "ProbeExample", "ProbeTask"]
