"""A stage of one's own: a frozen dataclass, registered by a decorator, works like a built-in one."""

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

import pytest
import torch
from torch import Tensor

from attnlab.errors import MechanismError
from attnlab.mechanisms import (
    REGISTRY,
    Dims,
    Layers,
    Mechanism,
    Parameter,
    Params,
    Score,
    Stage,
    Value,
    Weights,
    argument,
    stage,
)
from attnlab.mechanisms.scores import Dot
from attnlab.mechanisms.stage import StageError

pytestmark = pytest.mark.usefixtures("own_stages")


@dataclass(frozen=True)
class Laplace(Score):
    """exp(−‖q−k‖₁/width)."""

    width: float | Literal["learned"] = argument(1.0, at_least=0)
    signed: bool = False

    def parameters(self, dims: Dims) -> dict[str, Parameter]:
        return {"width": Parameter((dims.num_heads,), 1, 1)} if self.width == "learned" else {}

    def __call__(self, q: Tensor, k: Tensor, p: Params) -> Tensor:
        width = p["width"][:, None, None] if self.width == "learned" else self.width
        return torch.exp(-torch.cdist(q, k, p=1) / width)


@dataclass(frozen=True)
class Square(Weights):
    """max(s, 0)² · gain."""

    gain: float = argument(1.0, shown="positional")

    def __call__(self, scores: Tensor, n: Tensor, p: Params) -> Tensor:
        return self.gain * torch.relu(scores).square()


@dataclass(frozen=True)
class Clip(Value):
    """Values cut off at a bound."""

    bound: float
    layers: Layers = Layers("all")
    side: Literal["both", "above"] | None = "both"

    def __call__(self, t: Tensor, x: Tensor, first: Tensor, p: Params) -> Tensor:
        return t.clamp(None if self.side == "above" else -self.bound, self.bound)


def register_all() -> None:
    stage("laplace")(Laplace)
    stage("square")(Square)
    stage("clip")(Clip)


@pytest.mark.parametrize(
    ("line", "canonical"),
    [
        ("laplace", "laplace | softmax"),
        ("square | laplace(width=learned)", "laplace(width=learned) | square(gain=1)"),
        ("laplace(2, true) | softmax", "laplace(width=2, signed=true) | softmax"),
        ("dot | square(divide=n, gain=3)", "dot | square(divide=n, gain=3)"),
        ("clip(2)", "dot | softmax | clip(bound=2)"),
        (
            "clip(bound=2, layers=0,2-3, side=above)",
            "dot | softmax | clip(bound=2, layers=0,2-3, side=above)",
        ),
        ("clip(2, side=none) | bypass", "dot | softmax | clip(bound=2, side=none) | bypass(alpha=0.5)"),
    ],
)
def test_it_is_read_and_written(line: str, canonical: str) -> None:
    register_all()
    mechanism = Mechanism.parse(line)
    assert str(mechanism) == canonical
    assert Mechanism.parse(canonical) == mechanism


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("laplac | softmax", "did you mean 'laplace'?"),
        ("laplace(widht=1)", "laplace has no argument 'widht', did you mean 'width'?"),
        ("laplace(width=-1)", "laplace: width must be at least 0, not -1"),
        ("laplace | dot", "two stages answer the same question (score): 'laplace' and 'dot'"),
        ("clip", "clip needs bound=…"),
        ("clip(side=both)", "clip needs bound=…"),
        ("clip(1) | clip(2)", "'clip' is there twice"),
    ],
)
def test_its_arguments_are_checked(line: str, said: str) -> None:
    register_all()
    with pytest.raises(MechanismError) as caught:
        Mechanism.parse(line)
    assert said in str(caught.value)
    assert f"\n    {line}\n" in str(caught.value)


def test_it_computes_and_has_parameters() -> None:
    register_all()
    mechanism = Mechanism.parse("laplace(width=learned) | square | clip(0.5)")
    assert set(mechanism.parameters(num_heads=2, head_dim=3)) == {"laplace_width"}
    q = torch.zeros(1, 2, 1, 3)
    scores = mechanism.score(q, q, mechanism.params_of(mechanism.score, {"laplace_width": torch.ones(2)}))
    assert torch.equal(scores, torch.ones(1, 2, 1, 1))
    assert torch.equal(mechanism.values[0](q + 2, q, q, {}), q + 0.5)


def test_its_own_refusal_is_shown_with_the_line() -> None:
    @stage("picky")
    @dataclass(frozen=True)
    class Picky(Dot):
        low: float = 0.0
        high: float = 1.0

        def __post_init__(self) -> None:
            super().__post_init__()
            if self.low > self.high:
                raise ValueError("low is above high")

    with pytest.raises(MechanismError, match="picky: low is above high") as caught:
        Mechanism.parse("picky(low=2, high=1) | softmax")
    assert str(caught.value).endswith("\n    " + "^" * len("picky(low=2, high=1)"))


def test_a_cell_run_twice_replaces_its_stage() -> None:
    def cell() -> type[Stage]:
        @stage("mine")
        @dataclass(frozen=True)
        class Mine(Dot):
            pass

        return Mine

    first, second = cell(), cell()
    assert first is not second
    assert REGISTRY["mine"] is second


def test_an_argument_is_checked_in_python_too() -> None:
    register_all()
    with pytest.raises(StageError, match="laplace: width must be a number or learned, not 'wide'"):
        Laplace(width="wide")  # type: ignore[arg-type]
    with pytest.raises(StageError, match="clip: side must be both or above, not 'below'"):
        Clip(1, side="below")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["", "Laplace", "la-place", "2nd", "la place", "läplace", Laplace, None])
def test_a_name_is_a_lower_case_word(name: Any) -> None:
    with pytest.raises(MechanismError, match=r'@stage\("name"\) needs a name of lower case letters'):
        stage(name)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("dot", "a stage named 'dot' exists already: attnlab.mechanisms.scores.Dot"),
        ("baseline", "'baseline' is the name of a catalog entry: dot | softmax"),
    ],
)
def test_a_name_that_is_taken_is_refused(name: str, said: str) -> None:
    with pytest.raises(MechanismError, match=said.replace("|", r"\|")):
        stage(name)(Laplace)
    assert REGISTRY["dot"] is Dot
    assert name == "dot" or name not in REGISTRY


def derived(base: type, **fields: tuple[Any, Any]) -> type[Any]:
    """Make a frozen dataclass with a body and these fields."""
    body: dict[str, Any] = {name: default for name, (_, default) in fields.items()}
    body["__annotations__"] = {name: hint for name, (hint, _) in fields.items()}
    body["__call__"] = lambda self, *tensors: tensors[0]
    return dataclass(frozen=True)(type("Mine", (base,), body))


class NoDataclass(Dot):
    """A stage whose author forgot the dataclass."""


@dataclass(frozen=True)
class NoEquation(Score):
    """A stage whose author forgot the equation."""


@pytest.mark.parametrize(
    ("cls", "said"),
    [
        (object, "must derive from Score, Weights, Mask, Value or another slot"),
        (derived(object), "must derive from Score, Weights, Mask, Value or another slot"),
        (derived(Stage), "must derive from Score, Weights, Mask, Value or another slot"),
        (NoDataclass, r"must be a frozen dataclass: put @dataclass\(frozen=True\) below @stage"),
        (NoEquation, "stage 'mine' must define the methods __call__"),
        (
            derived(Score, mode=(str, "fast")),
            "argument 'mode' of Mine is annotated <class 'str'>; a stage's arguments",
        ),
        (derived(Score, sizes=(tuple[int, ...], ())), "argument 'sizes' of Mine is annotated"),
        (
            derived(Score, mode=("Mystery", 1)),
            "an annotation of Mine cannot be read: name 'Mystery' is not defined",
        ),
        (derived(Score, mode=(Literal["very fast"], "very fast")), "a line cannot write 'very fast'"),
        (derived(Score, mode=(Literal["3", "4"], "3")), "a line cannot write '3'"),
        (derived(Score, mode=(Literal["true", "maybe"], "true")), "a line cannot write 'true'"),
        (derived(Score, name=(float, 1.0)), "cannot have a field 'name': attnlab uses that name"),
        (derived(Score, cache=(float, dataclasses.field(default=1.0, init=False))), "'cache' has init=False"),
    ],
)
def test_a_class_that_is_no_stage_is_refused(cls: Any, said: str) -> None:
    with pytest.raises(MechanismError, match=said):
        stage("mine")(cls)
    assert "mine" not in REGISTRY


def test_tests_leave_no_stage_behind() -> None:
    assert {cls.__module__.split(".")[0] for cls in REGISTRY.values()} == {"attnlab"}
