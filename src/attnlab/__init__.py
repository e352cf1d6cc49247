"""attnlab: a test bench for attention mechanisms. Public names load on first use, so that importing is quick."""

from typing import TYPE_CHECKING

from attnlab.lazy import load_after, load_on_first_use

if TYPE_CHECKING:
    from attnlab import (
        audits,
        charts,
        construct,
        data,
        errors,
        heads,
        kernels,
        mechanisms,
        reports,
        statistics,
        studies,
        tasks,
        training,
    )
    from attnlab.audits import audit
    from attnlab.install import describe, install, mechanism_of, save, uninstall
    from attnlab.kernels import Attention, attend, explain, weights
    from attnlab.mechanisms import (
        CATALOG,
        Dims,
        Features,
        Forget,
        HeadMixing,
        LayerInput,
        Mask,
        Mechanism,
        Output,
        Parameter,
        Params,
        Positions,
        PositionScheme,
        Score,
        TileRule,
        TokenDropout,
        Value,
        Weights,
        argument,
        masked_softmax,
        mixer,
        stage,
    )
    from attnlab.statistics import compare
    from attnlab.studies import Study
    from attnlab.training import load

__version__ = "0.1.0"

HOMES = {
    "audits": "", "charts": "", "construct": "", "data": "", "errors": "", "heads": "", "kernels": "", "mechanisms": "",
    "reports": "", "studies": "", "tasks": "", "training": "",
    "audit": "audits",
    "describe": "install", "install": "", "mechanism_of": "install", "save": "install", "uninstall": "install",
    "Attention": "kernels", "attend": "kernels", "explain": "kernels", "weights": "kernels",
    "CATALOG": "mechanisms", "Dims": "mechanisms", "Features": "mechanisms", "Forget": "mechanisms",
    "HeadMixing": "mechanisms", "LayerInput": "mechanisms", "Mask": "mechanisms", "Mechanism": "mechanisms",
    "Output": "mechanisms", "Parameter": "mechanisms", "Params": "mechanisms", "PositionScheme": "mechanisms",
    "Positions": "mechanisms", "Score": "mechanisms", "TileRule": "mechanisms",
    "TokenDropout": "mechanisms", "Value": "mechanisms", "Weights": "mechanisms",
    "argument": "mechanisms", "masked_softmax": "mechanisms", "mixer": "mechanisms", "stage": "mechanisms",
    "compare": "statistics", "statistics": "",
    "Study": "studies",
    "load": "training",
}  # fmt: skip
"""The subpackage that defines each public name; an empty string for a subpackage itself."""

__all__ = [
    "CATALOG", "Attention", "Dims", "Features", "Forget", "HeadMixing", "LayerInput", "Mask", "Mechanism", "Output",
    "Parameter", "Params", "PositionScheme", "Positions", "Score", "Study", "TileRule", "TokenDropout", "Value",
    "Weights",
    "argument", "attend", "audit", "audits", "charts", "compare", "construct", "data", "describe", "errors", "explain",
    "heads", "install", "kernels", "load", "masked_softmax", "mechanism_of", "mechanisms",
    "mixer", "reports", "save", "stage", "statistics",
    "studies", "tasks", "training", "uninstall", "weights",
]  # fmt: skip

__getattr__, __dir__ = load_on_first_use(__name__, HOMES)

# transformers' from_pretrained reads models with a mechanism once attnlab is imported.
load_after("transformers.modeling_utils", "attnlab.install")
# So do Trainer, when it resumes or loads the best model, and peft.
load_after("transformers.trainer", "attnlab.install.trainer")
load_after("peft", "attnlab.install.adapter_config")
