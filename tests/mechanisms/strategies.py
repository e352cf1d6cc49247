"""Random stages and mechanisms, drawn from the annotations and the bounds of every registered stage.

    from tests.mechanisms.strategies import mechanisms

`moderate=True` keeps numbers where a kernel can compute them in fp32; without it they are of any size.
"""

import dataclasses
import math
from types import NoneType
from typing import Any

from hypothesis import reject
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from attnlab.errors import MechanismError
from attnlab.mechanisms import REGISTRY, Layers, Mechanism, Stage
from attnlab.mechanisms.arguments import argument_types
from attnlab.mechanisms.mechanism import label
from attnlab.mechanisms.stage import StageError

MODERATE = 4.0
MODERATE_WHOLE = 8
ANY_WHOLE = 10**400


def layers() -> SearchStrategy[str]:
    """Draw `all`, or a list of layers and ranges."""
    number = st.integers(0, 99)
    ends = st.tuples(number, number).map(sorted)
    part = number.map(str) | ends.map(lambda pair: f"{pair[0]}-{pair[1]}")
    return st.just("all") | st.lists(part, min_size=1, max_size=4).map(",".join)


def numbers(low: float | None, high: float | None, moderate: bool) -> SearchStrategy[float]:
    """Draw a float from its bounds; where any size will do, whole numbers of type int too."""
    if moderate:
        least, most = -MODERATE if low is None else low, MODERATE if high is None else 0.9 * high
        # Sixty-fourths: a factor of 1e-45 is a number too, but no kernel's gradient survives its reciprocal.
        return st.integers(math.ceil(64 * least), math.floor(64 * most)).map(lambda n: n / 64)
    drawn = st.floats(low, high, allow_nan=False, allow_infinity=False, exclude_max=high is not None)
    if high is not None:
        return drawn
    return drawn | st.integers(-(10**30) if low is None else math.ceil(low), 10**30)


def whole_numbers(low: float | None, high: float | None, moderate: bool) -> SearchStrategy[int]:
    """Draw an int from its bounds."""
    largest = MODERATE_WHOLE if moderate else ANY_WHOLE
    return st.integers(
        -largest if low is None else math.ceil(low), largest if high is None else min(largest, int(high) - 1)
    )


def values_of(item: dataclasses.Field[Any], admitted: tuple[Any, ...], moderate: bool) -> SearchStrategy[Any]:
    """Draw one argument's value from everything it admits."""
    low, high = item.metadata.get("at_least"), item.metadata.get("below")
    drawn: list[SearchStrategy[Any]] = []
    for option in admitted:
        if option is float:
            drawn.append(numbers(low, high, moderate))
        elif option is int:
            drawn.append(whole_numbers(low, high, moderate))
        elif option is bool:
            drawn.append(st.booleans())
        elif option is Layers:
            drawn.append(layers())
        else:
            drawn.append(st.none() if option is NoneType else st.just(option))
    return st.one_of(drawn)


def stages(cls: type[Stage], moderate: bool = False) -> SearchStrategy[Any]:
    """Draw a stage of one class with any arguments it admits."""
    admitted = argument_types(cls)
    fields = dataclasses.fields(cls)
    drawn = st.fixed_dictionaries({item.name: values_of(item, admitted[item.name], moderate) for item in fields})

    def build(arguments: dict[str, Any]) -> Stage:
        try:
            return cls(**arguments)
        except StageError:  # arguments that exclude each other
            reject()

    return drawn.map(build)


def stages_for(slot: str, moderate: bool = False) -> SearchStrategy[Any]:
    """Draw any stage that answers one question."""
    return st.one_of([stages(cls, moderate) for cls in REGISTRY.values() if cls.slot == slot])


def mechanisms(moderate: bool = False) -> SearchStrategy[Mechanism]:
    """Draw a mechanism, over all registered stages."""

    def several(slot: str) -> SearchStrategy[tuple[Any, ...]]:
        return st.lists(stages_for(slot, moderate), max_size=3, unique_by=label).map(tuple)

    def build(**slots: Any) -> Mechanism:
        try:
            return Mechanism(**slots)
        except MechanismError:  # stages that exclude each other
            reject()

    return st.builds(
        build,
        features=several("features"),
        forget=st.none() | stages_for("forget", moderate),
        heads=st.none() | stages_for("heads", moderate),
        delta=st.none() | stages_for("delta", moderate),
        score=stages_for("score", moderate),
        cap=st.none() | stages_for("cap", moderate),
        weights=stages_for("weights", moderate),
        causal=stages_for("causal", moderate),
        mask=several("mask"),
        values=several("values"),
        drop=st.none() | stages_for("drop", moderate),
        output=several("output"),
        positions=stages_for("positions", moderate),
        share=stages_for("share", moderate),
        kv_heads=st.none() | stages_for("kv_heads", moderate),
    )
