"""A model to audit, by the folder or the hub's name it is saved under."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import transformers
from torch import nn

from attnlab.errors import RequestError
from attnlab.install import load as load_installed
from attnlab.install.saving import WEIGHTS


def load(name: str) -> nn.Module:
    """Load a model with the head its configuration names; code that comes with a model is never run.

    One that `attnlab.save` wrote comes with its mechanism.
    """
    if (Path(name) / WEIGHTS).is_file():
        return load_installed(name)
    try:
        config = transformers.AutoConfig.from_pretrained(name)
        model: nn.Module = architecture(config).from_pretrained(name)
    except Exception as error:
        # transformers, safetensors and the hub raise errors of many kinds for a folder that is not a whole model.
        first = str(error).strip().splitlines()[0]
        where = "the folder" if Path(name).exists() else f"'{name}' is no folder here, and the hub"
        raise RequestError(
            f"cannot load a model from '{name}': {where} does not give one ({first}). "
            "Give a folder written by save_pretrained, or a name the hub can be asked for"
        ) from error
    return model


def architecture(config: Any) -> Any:
    """Return the class a configuration names; the bare model where it names none that transformers has."""
    names = getattr(config, "architectures", None) or []
    return next((found for name in names if (found := getattr(transformers, name, None))), transformers.AutoModel)
