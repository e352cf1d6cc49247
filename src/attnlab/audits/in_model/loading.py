"""A model to audit, by the folder or the name on the hub."""

from pathlib import Path

import transformers
from torch import nn

from attnlab.errors import PretrainedError, RequestError
from attnlab.install import load as load_installed
from attnlab.install.loading import find_newest_checkpoint
from attnlab.install.saving import list_weight_files
from attnlab.pretrained import load_pretrained


def load(name: str) -> nn.Module:
    """Load a model with the head that its configuration names; code that comes with a model is never run.

    A model written by `attnlab.save` is loaded with its mechanism.
    """
    folder = Path(name)
    if list_weight_files(folder):
        return load_installed(name)
    if not (folder / "config.json").exists():
        _refuse_other_folders(folder)
    try:
        heads = getattr(load_pretrained(transformers.AutoConfig, name), "architectures", None) or []
        classes = (getattr(transformers, head, None) for head in heads)
        model_class = next((found for found in classes if found is not None), transformers.AutoModel)
        model: nn.Module = load_pretrained(model_class, name)
    except PretrainedError as error:
        raise RequestError(
            f"cannot load a model from '{name}': {error}. Give a folder written by save_pretrained, or a name on the "
            "hub"
        ) from error
    return model


def _refuse_other_folders(folder: Path) -> None:
    """Refuse an adapter of peft and the folder of a Trainer, which have no model of their own, with what to give."""
    if (folder / "adapter_config.json").exists():
        raise RequestError(
            f"'{folder}' is an adapter of peft, without its base: load it with AutoPeftModelForCausalLM, save what its "
            "merge_and_unload() returns, and give that folder; or call attnlab.audit(model) in Python"
        )
    if newest := find_newest_checkpoint(folder):
        raise RequestError(
            f"'{folder}' has no model of its own, but checkpoints of Trainer; give the newest: '{newest}'"
        )
