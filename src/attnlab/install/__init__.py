"""A mechanism in a Hugging Face model, and such a model saved and loaded.

`attnlab.install(model, line)` calls this module: Python sets a submodule as an attribute of its package, so the module
and the function of the same name must be one object.
"""

import sys
from types import ModuleType

from attnlab.mechanisms import Line

from .description import describe
from .inspection import attention_layers, mechanism_of, penalty, set_progress, undecayed
from .installation import M, install, uninstall
from .layer import Layer
from .loading import load
from .prefix import prefix_of, set_prefix
from .pretrained import extend_transformers
from .saving import save

__all__ = [
    "Layer", "attention_layers", "describe", "install", "load", "mechanism_of", "penalty", "prefix_of", "save",
    "set_prefix", "set_progress", "undecayed", "uninstall",
]  # fmt: skip

extend_transformers()


class _CallableModule(ModuleType):
    def __call__(self, model: M, mechanism: str | Line, *, seed: int = 0) -> M:
        """Put a mechanism into a model: `install`."""
        return install(model, mechanism, seed=seed)


sys.modules[__name__].__class__ = _CallableModule
