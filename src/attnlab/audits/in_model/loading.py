"""A model to audit, by the folder or the name on the hub."""

from pathlib import Path

import transformers
from torch import nn

from attnlab.errors import RequestError
from attnlab.install import load as load_installed
from attnlab.install.saving import WEIGHTS


def load(name: str) -> nn.Module:
    """Load a model with the head that its configuration names; code that comes with a model is never run.

    A model written by `attnlab.save` is loaded with its mechanism.
    """
    if (Path(name) / WEIGHTS).is_file():
        return load_installed(name)
    try:
        heads = getattr(transformers.AutoConfig.from_pretrained(name), "architectures", None) or []
        classes = (getattr(transformers, head, None) for head in heads)
        model_class = next((found for found in classes if found is not None), transformers.AutoModel)
        model: nn.Module = model_class.from_pretrained(name)
    except Exception as error:
        # transformers, safetensors and the hub raise errors of many kinds for a folder that is not a whole model.
        first = str(error).strip().splitlines()[0]
        where = "the folder" if Path(name).exists() else f"'{name}' is not a folder here, and the hub"
        raise RequestError(
            f"cannot load a model from '{name}': {where} does not give one ({first}). "
            "Give a folder written by save_pretrained, or a name on the hub"
        ) from error
    return model
