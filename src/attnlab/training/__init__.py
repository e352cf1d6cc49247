"""One run: the loop, schedules, exact resume, and what is tuned (full, head, prompt, prefix, LoRA)."""

from .build import build
from .evaluation import Examples, evaluate
from .folder import read_result
from .job import Job
from .loop import train
from .progress import Display
from .result import Divergence, Evaluation, Result
from .run import Data, Run, Start
from .settings import Optimizer, Schedule, Settings, Stage, Watching
from .start import initialise
from .stream import FeatureStream, TokenStream
from .tuning import Tuning, apply_tuning, count_parameters
from .watch import late_step

__all__ = [
    "Data", "Display", "Divergence", "Evaluation", "Examples", "FeatureStream", "Job", "Optimizer", "Result", "Run",
    "Schedule", "Settings", "Stage", "Start", "TokenStream", "Tuning", "Watching", "apply_tuning", "build",
    "count_parameters", "evaluate", "initialise", "late_step", "read_result", "train",
]  # fmt: skip
