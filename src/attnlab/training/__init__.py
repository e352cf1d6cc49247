"""One run: the loop, schedules, exact resume, and what is tuned (full, head, prompt, prefix, LoRA).

Names load on first use: the settings of a run are read without torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnlab.lazy import load_on_first_use

if TYPE_CHECKING:
    from .job.build import build
    from .job.job import Examples, Job
    from .job.start import initialise
    from .job.stream import FeatureStream, TokenStream
    from .loop.evaluation import evaluate
    from .loop.progress import Display
    from .loop.train import train
    from .record.folder import read_result
    from .result import Divergence, Evaluation, Result, late_step
    from .spec import Data, Optimizer, RunSpec, Schedule, Segment, Settings, Start, Tuning
    from .tuning import apply_tuning, count_parameters

HOMES = {
    "build": "job.build",
    "Examples": "job.job", "evaluate": "loop.evaluation",
    "read_result": "record.folder",
    "Job": "job.job",
    "train": "loop.train",
    "Display": "loop.progress",
    "Divergence": "result", "Evaluation": "result", "Result": "result", "late_step": "result",
    "Data": "spec", "Optimizer": "spec", "RunSpec": "spec", "Schedule": "spec", "Segment": "spec", "Settings": "spec",
    "Start": "spec", "Tuning": "spec",
    "initialise": "job.start",
    "FeatureStream": "job.stream", "TokenStream": "job.stream",
    "apply_tuning": "tuning", "count_parameters": "tuning",
}  # fmt: skip
"""The file of each public name."""

__all__ = [
    "Data", "Display", "Divergence", "Evaluation", "Examples", "FeatureStream", "Job", "Optimizer", "Result", "RunSpec",
    "Schedule", "Segment", "Settings", "Start", "TokenStream", "Tuning", "apply_tuning", "build", "count_parameters",
    "evaluate", "initialise", "late_step", "read_result", "train",
]  # fmt: skip

__getattr__, __dir__ = load_on_first_use(__name__, HOMES)
