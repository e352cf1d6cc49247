"""What attention is: stages, the line that writes them, and a catalog. No training, no files, no models."""

from .arguments import Layers
from .catalog import CATALOG, UNIFORM, Entry
from .delta import Delta
from .features import Features
from .forgetting import Forget
from .head_mixing import HeadMixing
from .key_heads import KeyHeads
from .layered import LayeredMechanism, Line, parse_line
from .masks import Mask
from .mechanism import Mechanism, parse_mechanism
from .outputs import Output
from .parameter import Dims, Parameter
from .position_schemes import PositionScheme
from .scores import Score
from .stage import REGISTRY, SLOTS, LayerInput, Params, Positions, Stage, argument, stage
from .surroundings import Cap, CausalMask, SharedProjections, TokenDropout
from .values import Value
from .weights import TileRule, Weights, masked_softmax

__all__ = [
    "CATALOG",
    "REGISTRY",
    "SLOTS",
    "UNIFORM",
    "Cap",
    "CausalMask",
    "Delta",
    "Dims",
    "Entry",
    "Features",
    "Forget",
    "HeadMixing",
    "KeyHeads",
    "LayerInput",
    "LayeredMechanism",
    "Layers",
    "Line",
    "Mask",
    "Mechanism",
    "Output",
    "Parameter",
    "Params",
    "PositionScheme",
    "Positions",
    "Score",
    "SharedProjections",
    "Stage",
    "TileRule",
    "TokenDropout",
    "Value",
    "Weights",
    "argument",
    "masked_softmax",
    "parse_line",
    "parse_mechanism",
    "stage",
]
