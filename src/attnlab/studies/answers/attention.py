"""The attention of trained models on one held-out text, computed from the checkpoints of runs."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from attnlab.errors import AttnlabError, RequestError, StudyError
from attnlab.heads.recording import RecordedWeights, record_weights
from attnlab.heads.tokens import name_ids
from attnlab.tasks.batch import Feature
from attnlab.training import Data
from attnlab.training.job.build import make_dev
from attnlab.training.job.restore import Restored, restore

from ..plan.planning import PlannedRun
from .attention_record import AttentionRecord, HeadWeights
from .study_folder import Record

MIN_TOKENS, MAX_TOKENS = 12, 24
"""A text with fewer tokens shows little; of a longer one, the first are shown: each needs a label."""
NUM_EXAMPLES = 8
"""Held-out examples among which the text is chosen."""
MAX_HEADS = 144
"""Heads that are kept of a model, evenly spaced layers of a larger one."""


def compute_attention(record: Record, runs: Sequence[PlannedRun]) -> AttentionRecord:
    """Compute the attention of runs on the first held-out example that is long enough; the first run reads it."""
    inputs: Mapping[str, Tensor] = {}
    tokens: tuple[str, ...] = ()
    data: Data | None = None
    arms, missing, is_final = dict[str, HeadWeights](), dict[str, str](), True
    for run in runs:
        try:
            restored = restore(record.folder_of(run))
            if data is None:
                inputs, tokens = _read_example(restored)
                data = restored.run.data
            elif restored.run.data != data:
                raise RequestError("it is evaluated on other data than the baseline")
            arms[run.arm] = _thin(record_weights(restored.model, inputs))
        except RequestError as error:
            missing[run.arm] = str(error)
        except (AttnlabError, OSError) as error:
            missing[run.arm], is_final = str(error), False
    return AttentionRecord({run.arm: run.id for run in runs}, tokens, arms, missing, is_final)


def _read_example(restored: Restored) -> tuple[dict[str, Tensor], tuple[str, ...]]:
    """Return the inputs of the held-out example, and the names of its tokens."""
    run = restored.run
    few = run.model_copy(update={"data": run.data.model_copy(update={"num_dev": NUM_EXAMPLES})})
    dev = make_dev(few, restored.task, restored.tokenizer)
    if dev is None or not dev.features:
        raise StudyError("the run has nothing that it is evaluated on")
    feature = next((one for one in dev.features if len(one) >= MIN_TOKENS), max(dev.features, key=len))
    inputs = _cut(feature)
    return inputs, tuple(name_ids(inputs["input_ids"][0].tolist(), restored.tokenizer))


def _cut(feature: Feature) -> dict[str, Tensor]:
    inputs = {name: torch.tensor(values[:MAX_TOKENS].tolist())[None] for name, values in feature.inputs.items()}
    return {**inputs, "attention_mask": torch.ones_like(inputs["input_ids"])}


def _thin(recorded: RecordedWeights) -> HeadWeights:
    num_layers, num_heads = recorded.weights.shape[:2]
    num_kept = max(1, min(num_layers, MAX_HEADS // num_heads))
    places = np.unique(np.linspace(0, num_layers - 1, num_kept).round().astype(int)).tolist()
    return HeadWeights(recorded.weights[places].double().numpy(), tuple(recorded.layers[place] for place in places))
