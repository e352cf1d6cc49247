"""One run: the loop, schedules, exact resume, and what is tuned (full, head, prompt, prefix, LoRA)."""

from .build import build
from .evaluation import Examples, evaluate
from .folder import read_result
from .job import Job
from .loop import train
from .progress import Display
from .result import Divergence, Evaluation, Result
from .spec import Data, Optimizer, RunSpec, Schedule, Segment, Settings, Start, Tuning
from .start import initialise
from .stream import FeatureStream, TokenStream
from .tuning import apply_tuning, count_parameters
from .watch import late_step

__all__ = [
    "Data", "Display", "Divergence", "Evaluation", "Examples", "FeatureStream", "Job", "Optimizer", "Result", "RunSpec",
    "Schedule", "Segment", "Settings", "Start", "TokenStream", "Tuning", "apply_tuning", "build", "count_parameters",
    "evaluate", "initialise", "late_step", "read_result", "train",
]  # fmt: skip
