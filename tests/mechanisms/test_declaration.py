"""A class that cannot be a stage gets a sentence of attnlab: what came, what was needed, and what to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import attnlab
from attnlab.errors import AttnlabError, MechanismError, ShapeError
from attnlab.mechanisms import (
    REGISTRY,
    CausalMask,
    HeadMixing,
    Mask,
    Mechanism,
    Output,
    Positions,
    Score,
    TileRule,
    TokenDropout,
    Value,
    Weights,
    stage,
)
from attnlab.mechanisms.declaration import find_interface
from attnlab.mechanisms.stage import SLOTS, Slot

pytestmark = pytest.mark.usefixtures("own_stages")


def declare(*bases: type[Any], **body: Any) -> Any:
    """Register a frozen dataclass with this body as the stage 'mine'."""
    annotations = {name: "float" for name, value in body.items() if isinstance(value, float | str)}
    return stage("mine")(dataclass(frozen=True)(type("Mine", bases, {"__annotations__": annotations, **body})))


def assign(self: Any) -> None:
    self.t = nn.Parameter(torch.ones(1))


def force(self: Any) -> None:
    object.__setattr__(self, "t", nn.Parameter(torch.ones(1)))


def scores_only(self: Any, scores: Tensor) -> Tensor:
    return scores


def no_self(q: Tensor, k: Tensor, p: Any) -> Tensor:
    return q @ k.mT


def swapped(self: Any, k: Tensor, q: Tensor, p: Any) -> Tensor:
    return q @ k.mT


def visible_by_position(self: Any, scores: Tensor, n: Tensor, p: Any, visible: Any = None) -> Tensor:
    return scores


def with_temperature(self: Any, scores: Tensor, n: Tensor, p: Any, temperature: float = 1.0) -> Tensor:
    return scores


def sound(self: Any, scores: Tensor, n: Tensor, p: Any) -> Tensor:
    return scores


def sound_score(self: Any, q: Tensor, k: Tensor, p: Any) -> Tensor:
    return q @ k.mT


class Both(Score, Weights):  # type: ignore[misc]
    """A stage of two slots."""


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: declare(Weights, __call__=scores_only), "__call__ is def __call__(self, scores) and is called with"),
        (lambda: declare(Weights, __call__=scores_only), "write `def __call__(self, scores, n, p)`"),
        (lambda: declare(Score, __call__=no_self), "is called with (q, k, p); write `def __call__(self, q, k, p)`"),
        (lambda: declare(Score, __call__=staticmethod(no_self)), "a method with a self, not a staticmethod"),
        (lambda: declare(Score, __call__=swapped), "is def __call__(self, k, q, p) and is called with (q, k, p)"),
        (lambda: declare(Weights, __call__=visible_by_position), "`def __call__(self, scores, n, p, *, visible)`"),
        (lambda: declare(Weights, __call__=with_temperature), "takes 'temperature', which it is not given; make it a"),
        (lambda: declare(Score, __call__=lambda self, q, k, v, p: q), "__call__ takes 'v', which it is not given"),
        (lambda: declare(Score, __call__=lambda self, a, b, c, d: a), "__call__ takes 'd', which it is not given"),
        (lambda: declare(Value, __call__=sound), "write `def __call__(self, t, x, first, p)`"),
        (lambda: declare(Output, __call__=scores_only), "write `def __call__(self, output, q, p)`"),
        (lambda: declare(Output), "must define the methods __call__: def __call__(self, output, q, p)"),
        (lambda: declare(Weights, __call__=sound, parameters=lambda self: {}), "write `def parameters(self, dims)`"),
        (lambda: declare(Weights, __call__=sound, at=lambda self: self), "write `def at(self, progress)`"),
        (
            lambda: declare(Weights, __call__=sound, tile_rule=lambda self: TileRule),
            "put @property above def tile_",
        ),
        (lambda: declare(CausalMask, __call__=sound), "defines __call__, which is never called in the slot causal"),
        (lambda: declare(TokenDropout, __call__=sound), "never called in the slot drop; derive from Score, Weights"),
        (lambda: declare(Both, __call__=sound), "derives from Score and Weights; a stage answers one question"),
        (lambda: declare(Weights, __call__=sound, w=nn.Parameter(torch.ones(4))), "has a torch.nn.Parameter 'w'"),
        (lambda: declare(Weights, __call__=sound, f=nn.Linear(2, 2)), "torch.nn.Linear 'f', which would be neither"),
        (lambda: declare(Weights, __call__=sound, __init__=assign), "Mine defines __init__, and the arguments of a"),
        (lambda: declare(nn.Module, Weights, __call__=sound), "Mine is a torch.nn.Module, and a stage has no state"),
        (lambda: declare(Weights, nn.Module, __call__=sound), "derive it from Weights alone"),
        (lambda: declare(Weights, __call__=sound, width="wide"), "default of 'width' must be a number, not 'wide'"),
    ],
)
def test_a_wrong_declaration_is_refused(make: Callable[[], object], words: str) -> None:
    with pytest.raises(MechanismError) as caught:
        make()
    assert words in str(caught.value)
    assert "mine" not in REGISTRY


def test_a_dataclass_that_is_not_frozen_is_refused() -> None:
    with pytest.raises(MechanismError, match=r"Mine is a dataclass that can be changed.*@dataclass\(frozen=True\)"):

        @stage("mine")
        @dataclass
        class Mine(Score):  # type: ignore[misc]
            def __call__(self, q: Tensor, k: Tensor, p: Any) -> Tensor:
                return q @ k.mT


def test_a_default_that_can_be_changed_is_refused() -> None:
    with pytest.raises(MechanismError, match=r"argument 'sizes' of Mine has the default \[1, 2\]; a stage's arguments"):

        class Mine(Score):
            sizes: Any = [1, 2]  # noqa: RUF012


def test_a_tensor_as_a_field_points_at_parameters() -> None:
    with pytest.raises(MechanismError, match="learned tensors are declared in `parameters`"):

        @stage("mine")
        @dataclass(frozen=True)
        class Mine(Score):
            w: Tensor

            def __call__(self, q: Tensor, k: Tensor, p: Any) -> Tensor:
                return q @ k.mT


def test_a_weights_stage_needs_defaults() -> None:
    with pytest.raises(MechanismError, match=r"'width' of Mine needs a default, since 'divide'.*`width: float = …`"):

        class Mine(Weights):
            width: float


def test_a_class_without_the_decorator_is_named() -> None:
    class Forgotten(Score):
        """A stage whose author forgot @stage."""

    with pytest.raises(MechanismError, match=r'Forgotten is not registered: put @stage\("forgotten"\) above'):
        Mechanism.parse("forgotten | softmax")
    del Forgotten


def test_an_attribute_without_a_type_is_named() -> None:
    mine = declare(Weights, __call__=sound)
    mine.width = 2
    with pytest.raises(MechanismError, match=r"has no argument 'width'; it is an attribute without a type: write"):
        Mechanism.parse("dot | mine(width=3)")


@pytest.mark.parametrize(
    ("base", "result", "words"),
    [
        (Score, lambda q, k, p: q, "must return [batch, heads, queries, keys] = (1, 2, 5, 5), not (1, 2, 5, 3)"),
        (Score, lambda q, k, p: None, "not None: its call has no return"),
        (Score, lambda q, k, p: (q @ k.mT).double(), "in torch.float32, as its input, not torch.float64"),
        (Score, lambda q, k, p: (q @ k.mT).long(), "in floating point, not torch.int64"),
        (Weights, lambda s, n, p: s > 0, "in floating point, not torch.bool; return tensor.to"),
        (Weights, lambda s, n, p: s.sum(-1), "not (1, 2, 5)"),
        (
            Value,
            lambda t, x, first, p: t[:, :, :2],
            "[batch, heads, length, head_dim] = (1, 2, 5, 3), not (1, 2, 2",
        ),
        (Value, lambda t, x, first, p: t > 0, "in floating point, not torch.bool"),
        (Output, lambda out, q, p: out.sum(-1), "[batch, heads, queries, head_dim] = (1, 2, 5, 3), not (1, 2, 5)"),
        (Output, lambda out, q, p: 1.0, "= (1, 2, 5, 3), not float"),
    ],
)
@pytest.mark.parametrize("pointwise", [False, True])
def test_a_wrong_result_is_refused(base: type[Any], result: Any, words: str, pointwise: bool) -> None:
    more = {"pointwise": True} if pointwise and base is Weights else {}
    arguments: dict[Any, str] = {Score: "q k p", Weights: "scores n p", Value: "t x first p", Output: "output q p"}
    names = arguments[base].split()
    scope: dict[str, Any] = {"result": result}
    exec(f"def call(self, {', '.join(names)}): return result({', '.join(names)})", scope)
    declare(base, __call__=scope["call"], **more)
    q, k, v = torch.randn(3, 1, 2, 5, 3)
    lines: dict[Any, str] = {Score: "mine | softmax", Weights: "dot | mine"}
    line = lines.get(base, "dot | softmax | mine")
    with pytest.raises(ShapeError) as caught:
        attnlab.attend(q, k, v, line)
    assert words in str(caught.value)


def test_a_wrong_result_is_refused_in_a_model() -> None:
    from tests.install.models import build, tokens

    def shorter(self: Any, t: Tensor, x: Tensor, first: Tensor, p: Any) -> Tensor:
        return t[..., :2]

    declare(Value, __call__=shorter)
    model: Any = attnlab.install(build("gpt2"), "dot | softmax | mine")
    with pytest.raises(AttnlabError, match=r"'mine' must return \[batch, heads, length, head_dim\]"):
        model(tokens())


INTERFACES = {cls.slot: find_interface(cls) for cls in REGISTRY.values()}
METHODS: dict[Slot, list[str]] = {
    "score": ["__call__"], "cap": ["__call__"], "weights": ["__call__"], "forget": ["log_kept"], "causal": [],
    "mask": ["__call__"], "features": ["__call__"],
    "heads": ["mix_scores", "mix_weights", "spread_values", "combine"], "values": ["__call__"], "delta": ["strengths"],
    "drop": ["draw_kept_keys"], "output": ["__call__"], "positions": ["rotate", "position_bias"], "share": [],
    "kv_heads": [], "mixer": ["build"],
}  # fmt: skip
"""The methods that each slot calls, of which a stage defines one or more."""


@pytest.mark.parametrize("slot", SLOTS)
def test_a_stage_that_defines_no_method_of_its_slot_is_refused(slot: Slot) -> None:
    with pytest.raises(MechanismError, match=r"must define|defines none of the methods|has a fixed set of choices"):
        declare(INTERFACES[slot])
    for method in METHODS[slot]:
        misspelt = method.strip("_")[:-1] + "z"
        with pytest.raises(MechanismError, match=f"{method}|{misspelt}"):
            declare(INTERFACES[slot], **{misspelt: lambda self: None})
    assert "mine" not in REGISTRY


@pytest.mark.parametrize(
    ("base", "body", "sentence"),
    [
        (HeadMixing, "mix_score", "defines 'mix_score', which nothing reads; did you mean 'mix_scores'"),
        (HeadMixing, "combination", "did you mean 'combine' by 'combination'"),
        (TokenDropout, "draw_keys", "did you mean 'draw_kept_keys' by 'draw_keys'"),
        (Weights, "pointwse", "did you mean 'pointwise'"),
        (Weights, "call", "did you mean '__call__'"),
    ],
)
def test_a_misspelt_method_is_named(base: Any, body: str, sentence: str) -> None:
    with pytest.raises(MechanismError, match=sentence):
        declare(base, **{body: sound})


def test_a_mask_has_nothing_that_is_learned() -> None:
    def with_p(self: Any, p: Any, *, positions: Positions) -> Tensor:
        return positions.distances < 4

    with pytest.raises(
        MechanismError, match=r"'p', which it is not given; booleans have no gradient.*any of positions"
    ):
        declare(Mask, __call__=with_p)
    with pytest.raises(MechanismError, match="declares parameters: booleans have no gradient"):
        declare(Mask, parameters=lambda self, dims: {}, __call__=lambda self, *, positions: positions.distances < 4)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (assign, r"Mine sets self.t \(in assign, line \d+ of .*test_declaration.py\), and a stage has no state"),
        (assign, r'declare a learned tensor, `def parameters\(self, dims\): return {"t": Parameter'),
        (force, r"Mine has a torch.nn.Parameter 't', which would be neither trained nor saved; declare it"),
    ],
)
def test_a_stage_that_gives_itself_a_trained_tensor_is_refused_with_what_to_write(
    method: Callable[[Any], None], message: str
) -> None:
    declare(Weights, __call__=sound, __post_init__=method)
    with pytest.raises(MechanismError, match=message):
        attnlab.Attention("dot | mine", num_heads=2, head_dim=4)
