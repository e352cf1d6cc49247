"""A mechanism: one stage or several for each slot of attention, as a frozen value.

`Mechanism.parse` reads the line that `str` writes: parse(str(m)) == m, and str(parse(line)) is the line in its
canonical order, without defaults.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

import torch
from torch import Tensor

from attnlab.errors import MechanismError, closest
from attnlab.notebook import Facts, Showable

from . import softmax_variants  # noqa: F401  # its stages are registered before a line is read
from .delta import Delta
from .earlier_tokens import count_earlier
from .features import Features
from .forgetting import Forget
from .grammar import MARKS, LineReader, fail, has_layer_marks, refuse_layers, tokenize
from .head_mixing import HeadMixing
from .key_heads import KeyHeads
from .masks import Mask
from .mixer import Mixer
from .outputs import Output
from .parameter import Dims, Parameter, check_parameters
from .position_schemes import ModelPositions, PositionScheme
from .scores import Dot, Score
from .stage import NAMED, REGISTRY, SLOTS, Params, Slot, Stage
from .surroundings import Cap, CausalMask, SharedProjections, TokenDropout
from .values import Target, Value
from .weights import Softmax, Weights

KINDS: tuple[type[Stage], ...] = (
    Score,
    Cap,
    Weights,
    Forget,
    CausalMask,
    Mask,
    Features,
    HeadMixing,
    Value,
    Delta,
    TokenDropout,
    Output,
    PositionScheme,
    SharedProjections,
    KeyHeads,
    Mixer,
)
SEVERAL: frozenset[Slot] = frozenset({"mask", "features", "values", "output"})
"""The slots that hold any number of stages, applied in the order written."""
OPTIONAL: frozenset[Slot] = frozenset({"cap", "forget", "heads", "delta", "drop", "kv_heads", "mixer"})
"""The slots that may be empty."""
ALONE = "'{}' takes the place of the whole attention, so that no other stage acts; remove '{}'"
DUPLICATE = "'{}' is there twice; a stage may act on a tensor once"


@dataclass(frozen=True, repr=False)
class Mechanism(Showable):
    """An attention mechanism: an immutable value that can be compared, hashed and printed."""

    score: Score = Dot()
    weights: Weights = Softmax()
    causal: CausalMask = CausalMask()
    values: tuple[Value, ...] = ()
    drop: TokenDropout | None = None
    output: tuple[Output, ...] = ()
    share: SharedProjections = SharedProjections()
    cap: Cap | None = None
    mask: tuple[Mask, ...] = ()
    positions: PositionScheme = ModelPositions()
    features: tuple[Features, ...] = ()
    forget: Forget | None = None
    heads: HeadMixing | None = None
    delta: Delta | None = None
    kv_heads: KeyHeads | None = None
    mixer: Mixer | None = None
    weights_line: str = dataclasses.field(init=False, repr=False, compare=False)
    """The weights stage as a line writes it, computed once, since torch.compile cannot trace how it is written."""

    def __post_init__(self) -> None:
        for kind in KINDS:
            slot, held = kind.slot, getattr(self, kind.slot)
            wanted = f"a tuple of {kind.__name__} stages" if slot in SEVERAL else f"a {kind.__name__} stage"
            items = held if slot in SEVERAL else () if held is None and slot in OPTIONAL else (held,)
            if not isinstance(items, tuple) or not all(isinstance(item, kind) for item in items):
                raise MechanismError(f"'{slot}' of a mechanism is {wanted}, not {held!r}")
            for item in items:
                if "name" not in vars(type(item)):
                    raise MechanismError(f'{type(item).__name__} has no name: put @stage("name") above it')
        labels = [text for text, _ in self.label_stages()]
        for text in labels:
            if labels.count(text) > 1:
                raise MechanismError(DUPLICATE.format(text))
        self._check_forgetting()
        self._check_mixer()
        object.__setattr__(self, "weights_line", str(self.weights))

    def _check_forgetting(self) -> None:
        """Refuse a decay per channel if no channels of q·k are left that it could multiply."""
        if self.forget is None or not self.forget.is_per_channel:
            return
        is_product = self.score.form == "dot" and self.cap is None and not self.bias_stages
        mixes_pairs = self.heads is not None and self.heads.mixes_pairs
        has_channels = all(stage.width(4) == 4 for stage in self.features)
        if not (self.weights.is_identity and is_product and has_channels) or mixes_pairs:
            raise MechanismError(
                f"'{self.forget}' multiplies the channels of a dot product, under identity weights and without a cap, "
                "a bias of positions or mixed scores; use forget(per=head)"
            )
        if self.delta is not None:
            raise MechanismError(f"'{self.delta}' decays by one number per head; use forget(per=head), or none")

    def _check_mixer(self) -> None:
        """Refuse other stages beside a mixer."""
        for item in dataclasses.fields(self) if self.mixer is not None else ():
            held = getattr(self, item.name) if item.init and item.name != "mixer" else item.default
            if held != item.default:
                raise MechanismError(ALONE.format(self.mixer, held[0] if isinstance(held, tuple) else held))

    @classmethod
    def parse(cls, line: "str | Mechanism") -> "Mechanism":
        """Read a line, or the name of a catalog entry; a line by layer gives a `LayeredMechanism`, typed as `Line` by
        `parse_line`."""
        is_by_layer = isinstance(line, str) and has_layer_marks(NAMED.get(line.strip(), line))
        if is_by_layer or not isinstance(line, str | Mechanism):
            parsed: Mechanism = READERS["layers"](line)
            return parsed
        return parse_mechanism(line)

    def __repr__(self) -> str:
        return f"Mechanism.parse({str(self)!r})"

    def facts(self) -> Facts:
        """Return a row for each stage that a line shows: its question, its equation and what it learns."""
        rows = [
            (item.slot, str(item), (type(item).__doc__ or "").split("\n")[0], ", ".join(item.parameters(Dims(2, 2, 2))))
            for item in self.list_written_stages()
        ]
        return Facts(str(self), columns=("slot", "stage", "what it does", "learned"), rows=rows)

    def __str__(self) -> str:
        return " | ".join(str(item) for item in self.list_written_stages())

    def list_written_stages(self) -> Iterator[Stage]:
        """Yield the stages that a line shows: a mixer alone; else score and weights always, others if they are not the
        default."""
        if self.mixer is not None:
            yield self.mixer
            return
        for slot in SLOTS:
            held = getattr(self, slot)
            if slot in SEVERAL:
                yield from held
            elif slot in ("score", "weights") or (held is not None and held != getattr(DEFAULT, slot)):
                yield held

    def label_stages(self) -> Iterator[tuple[str, Stage]]:
        """Yield every stage with the label that prefixes its parameters."""
        for slot in SLOTS:
            held = getattr(self, slot)
            for item in held if slot in SEVERAL else [held] if held is not None else []:
                yield label(item), item

    def at(self, progress: float) -> Self:
        """Return the mechanism with every stage as it is at a point of training, from 0 to 1."""
        stages = {slot: getattr(self, slot) for slot in SLOTS if getattr(self, slot) is not None}
        changed: dict[str, Any] = {
            slot: tuple(item.at(progress) for item in held) if slot in SEVERAL else held.at(progress)
            for slot, held in stages.items()
        }
        return dataclasses.replace(self, **changed)

    def at_layer(self, index: int) -> Self:
        """Return the mechanism of a layer: the same in each."""
        return self

    @property
    def distinct(self) -> tuple[Self, ...]:
        """The different mechanisms of a line: this one."""
        return (self,)

    def find_stages_needing(self, need: str) -> tuple[Stage, ...]:
        """Return the stages that request an input beside its tensors, such as `positions`, `x` or `tokens`."""
        stages = (self.score, self.weights, *self.mask, *self.features, *self.values, *self.output)
        asking = tuple(item for item in stages if need in item.inputs)
        gates = tuple(item for item in (self.forget, self.delta) if item is not None)
        if need == "x":
            return (*asking, *(item for item in gates if item.uses_x))
        if need == "positions":
            # What pairs a query with its own token finds the key at its position.
            own = tuple(item for item in self.output if "own" in item.inputs)
            schemes = (self.positions,) if self.positions.uses_positions else ()
            return (*asking, *schemes, *own, *(gates if self.forget is not None else ()))
        return asking

    @property
    def early_features(self) -> tuple[Features, ...]:
        """The features that act before positions enter: in a model, on its projections."""
        return tuple(item for item in self.features if item.acts_before_positions)

    def list_projection_stages(self, part: Target) -> tuple[Value | Features, ...]:
        """List the stages that act on a model's projection of queries, keys or values, in their order."""
        values = (item for item in self.values if item.target == part)
        return (*values, *(item for item in self.early_features if part in item.sides))

    def count_earlier_tokens(self, part: Target) -> int:
        """Return how many earlier tokens a projection depends on: the sum over its stages that request `before`."""
        return sum(count_earlier(item) for item in self.list_projection_stages(part))

    @property
    def num_earlier(self) -> int:
        """The largest number of earlier tokens that a projection depends on."""
        parts: tuple[Target, ...] = ("q", "k", "v")
        return max(self.count_earlier_tokens(part) for part in parts)

    @property
    def bias_stages(self) -> tuple[Score | PositionScheme, ...]:
        """The stages that add a bias of positions to the scores."""
        return tuple(item for item in (self.score, self.positions) if item.bias_of is not None)

    def find_reach(self, num_heads: int) -> int | None:
        """Return the distance from which on no query sees a key, or None if the masks of positions allow any."""
        known = [item.find_reach(num_heads) for item in self.mask if not item.is_by_row]
        reaches = [reach for reach in known if reach is not None]
        return min(reaches) if reaches else None  # torch.compile traces no default of `min`

    def parameters(
        self, num_heads: int, head_dim: int, value_dim: int | None = None, layer: int = 0, **more: int
    ) -> dict[str, Parameter]:
        """Declare every learned parameter as `<stage>_<name>`; the arguments are the fields of `Dims`."""
        dims = Dims(num_heads, head_dim, head_dim if value_dim is None else value_dim, layer, **more)
        wide = self._widen(dims)
        declared: dict[str, Parameter] = {}
        for text, item in self.label_stages():
            own = wide.get(item, dims)
            if not isinstance(item, (Value, Features)):  # keys and values are repeated for the heads of queries
                own = dataclasses.replace(own, num_key_heads=num_heads)
            parameters = check_parameters(item.name, item.parameters(own), own)
            declared |= {f"{text}_{name}": parameter for name, parameter in parameters.items()}
        return declared

    def _widen(self, dims: Dims) -> dict[Stage, Dims]:
        """Return the sizes for stages that get what features make of queries and keys, which may be wider."""
        found: dict[Stage, Dims] = {}
        for is_before in (True, False):
            for item in self.features:
                if item.acts_before_positions == is_before:
                    found[item] = dims
                    dims = dataclasses.replace(dims, head_dim=item.width(dims.head_dim))
        return {**found, self.score: dims}

    def params_of(self, item: Stage, parameters: Mapping[str, Tensor]) -> Params:
        """Return one stage's parameters under their own names."""
        if not parameters:
            return {}
        mine = f"{label(item)}_"
        # bypass_q_alpha begins with bypass_ too, but belongs to bypass_q: the longest label owns a name.
        longer = [f"{text}_" for text, _ in self.label_stages() if len(text) >= len(mine)]
        return {
            name.removeprefix(mine): value
            for name, value in parameters.items()
            if name.startswith(mine) and not any(name.startswith(text) for text in longer)
        }


def label(item: Stage) -> str:
    """Name a stage within its mechanism: by its name, and the tensor it acts on if that is not v."""
    return f"{item.name}_{item.target}" if isinstance(item, Value) and item.target != "v" else item.name


DEFAULT = Mechanism()

READERS: dict[str, Callable[[Any], Any]] = {}
"""Reads lines by layer; filled by layered.py, which builds on this file."""


def parse_mechanism(line: str | Mechanism) -> Mechanism:
    """Read a line of one mechanism, or the name of a catalog entry; refuse a line by layer."""
    if isinstance(line, Mechanism):
        return line
    if hasattr(line, "at_layer"):
        refuse_layers(str(line))
    if not isinstance(line, str):
        raise MechanismError(f"a mechanism is a line such as 'dot | softmax', not {type(line).__name__}")
    if not line.isprintable():  # a tab or a line break would misplace the marker of an error
        line = " ".join(line.split())
    line = NAMED.get(line.strip(), line)
    refuse_layers(line)
    # Dynamo traces the parser itself, and warns about caches.
    return _assemble(line) if torch.compiler.is_compiling() else _assemble_once(line, tuple(REGISTRY.values()))


@lru_cache(maxsize=1024)
def _assemble_once(line: str, registered: tuple[type[Stage], ...]) -> Mechanism:
    """Build a mechanism, and again only if the registered stages change."""
    return _assemble(line)


def _assemble(line: str) -> Mechanism:
    if not line.strip():
        fail(line, 0, 1, "an empty line is not a mechanism; the baseline is 'dot | softmax'")
    words = tokenize(line)
    if len(words) == 1 and words[0].text not in REGISTRY and words[0].text not in MARKS:
        hint = closest(words[0].text, [*REGISTRY, *NAMED]) or "; `attnlab mechanisms` lists the catalog"
        message = f"no stage and no catalog entry is named '{words[0].text}'{hint}"
        fail(line, words[0].start, words[0].end, message)
    chosen: dict[str, Stage | tuple[Stage, ...]] = {}
    labels: set[str] = set()
    stages = LineReader(line).read_stages()
    mixers = [item for item, _ in stages if item.slot == "mixer"]
    for item, token in stages:
        if mixers and (item.slot != "mixer" or item is not mixers[0]):
            fail(line, token.start, token.end, ALONE.format(mixers[0], item))
        before = chosen.get(item.slot)
        if item.slot in SEVERAL:
            if label(item) in labels:
                fail(line, token.start, token.end, DUPLICATE.format(label(item)))
            labels.add(label(item))
            chosen[item.slot] = (*before, item) if isinstance(before, tuple) else (item,)
        elif isinstance(before, Stage):
            message = f"two stages answer the same question ({item.slot}): '{before.name}' and '{item.name}'"
            fail(line, token.start, token.end, message)
        else:
            chosen[item.slot] = item
    return dataclasses.replace(DEFAULT, **chosen)  # type: ignore[arg-type]
