"""One run: its settings, the training loop, exact resume, and what trains (full, head, prompt, prefix, LoRA).

Names load on first use, so that the settings of a run are read without torch.
"""

from typing import TYPE_CHECKING

from attnlab.lazy import load_on_first_use

if TYPE_CHECKING:
    from .job.build import build
    from .job.job import Examples, Job
    from .job.loading import load
    from .job.start import initialise
    from .job.stream import FeatureStream, TokenStream
    from .loop.evaluation import evaluate
    from .loop.progress import Display
    from .loop.train import train
    from .record.folder import read_result
    from .result import Divergence, Evaluation, Result, late_step
    from .spec import Data, Optimizer, RunSpec, Schedule, Segment, Settings, Start, Tuning
    from .tracking.tracker import TrackedRun, Tracker, tracker
    from .tuning.apply import apply_tuning
    from .tuning.parts import count_parameters

__all__ = [
    "Data", "Display", "Divergence", "Evaluation", "Examples", "FeatureStream", "Job", "Optimizer", "Result", "RunSpec",
    "Schedule", "Segment", "Settings", "Start", "TokenStream", "TrackedRun", "Tracker", "Tuning", "apply_tuning",
    "build", "count_parameters", "evaluate", "initialise", "late_step", "load", "read_result", "tracker", "train",
]  # fmt: skip

__getattr__, __dir__ = load_on_first_use(__name__)
