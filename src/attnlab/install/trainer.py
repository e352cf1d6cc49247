"""Trainer of transformers: training resumes from a checkpoint with a mechanism, and the best one is loaded.

Importing this module extends Trainer, once: Trainer looks for model.safetensors, which a model with a mechanism never
has. Checkpoints without a mechanism, adapters of peft, FSDP and DeepSpeed are treated as before.
"""

from pathlib import Path
from typing import Any

from transformers import PreTrainedModel, Trainer

from attnlab.errors import InstallError

from .compat import hook_checkpoint_loading
from .inspection import mechanism_of
from .loading import load_weights
from .saving import list_weight_files

PLAIN_WEIGHTS = ("model*.safetensors*", "pytorch_model*")


def load_checkpoint(trainer: Any, checkpoint: str) -> bool:
    """Load a checkpoint with a mechanism into the model of a Trainer; return False if Trainer is to load it itself."""
    folder, model = Path(checkpoint), trainer.model
    is_sharded = trainer.is_fsdp_enabled or trainer.is_deepspeed_enabled
    if is_sharded or not isinstance(model, PreTrainedModel):
        return False
    if list_weight_files(folder):
        load_weights(model, folder)
        return True
    mechanism = mechanism_of(model)
    if mechanism is not None and any(file for pattern in PLAIN_WEIGHTS for file in folder.glob(pattern)):
        raise InstallError(
            f"'{folder}' holds weights without a mechanism, and this {type(model).__name__} has '{mechanism}'; to "
            "train from these weights, load them with from_pretrained, install the mechanism, and do not resume"
        )
    return False


hook_checkpoint_loading(Trainer, load_checkpoint)
