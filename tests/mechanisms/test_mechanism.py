"""A mechanism is data: read from a line, written as one, compared, hashed, refused where it is wrong."""

import copy
import dataclasses
import pickle
import re
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlab.errors import MechanismError
from attnlab.mechanisms import Dims, Mechanism, Stage
from attnlab.mechanisms.arguments import write
from attnlab.mechanisms.mechanism import SEVERAL
from attnlab.mechanisms.outputs import Gate, Penalize
from attnlab.mechanisms.scores import Cosine, Dot, Minkowski, Score
from attnlab.mechanisms.stage import name_argument
from attnlab.mechanisms.surroundings import CausalMask, SharedProjections, TokenDropout
from attnlab.mechanisms.values import Bypass, UnitValues, ValueResidual
from attnlab.mechanisms.weights import Identity, Relu, Softmax

from .strategies import mechanisms

# The lines of the design, with what they say.
EXAMPLES = {
    "dot | softmax": Mechanism(),
    "additive | softmax": None,
    "cosine | relu(divide=n)": Mechanism(Cosine(), Relu(divide="n")),
    "cosine | identity(divide=learned)": Mechanism(Cosine(), Identity(divide="learned")),
    "dot | softmax | bypass(alpha=0.5)": Mechanism(values=(Bypass(alpha=0.5),)),
    "dot | softmax | mask(after)": Mechanism(causal=CausalMask("after")),
    "minkowski(p=learned) | softmax | share(qk)": Mechanism(Minkowski(p="learned"), share=SharedProjections("qk")),
}

# Several ways to write one mechanism; the first is the one that `str` writes.
EQUIVALENT = [
    ("dot | softmax", "softmax | dot", "dot", "softmax", "  dot|softmax  ", "dot() | softmax()", "baseline"),
    ("dot | softmax", "dot | softmax | mask(before) | share(separate)", "dot(scale=none)"),
    ("dot | relu", "relu(divide=1) | dot", "relu(divide_at=query)", "relu(1, query)"),
    ("dot | softmax | bypass(alpha=0.5)", "bypass", "bypass()", "bypass(0.50, v)", "bypass(5e-1)"),
    ("dot | softmax | bypass(alpha=2)", "bypass(2)", "bypass(alpha=2.0)", "bypass(alpha=+2e0)"),
    ("dot | softmax | bypass(alpha=0.5, layers=0,2)", "bypass(layers=0 , 2)", "bypass(layers=0,2, on=v)"),
    ("dot | softmax | token_dropout(0.1)", "token_dropout", "token_dropout(p=0.1)"),
    ("dot | softmax | penalize(output, 0.01)", "penalize", "penalize(strength=0.01)", "penalize(output)"),
    ("minkowski(p=2) | softmax", "minkowski", "minkowski(2)", "minkowski(p=2.0) | softmax"),
    ("dot | softmax | mask(zero) | unit_values | gate | share(qkv)",
     "share(qkv)|gate|unit_values|mask(where=zero)|softmax|dot",
     "share(qkv)\n| gate | unit_values\n\t| mask(zero)"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "mechanism"), EXAMPLES.items())
def test_the_designs_lines_are_read_and_written(line: str, mechanism: Mechanism | None) -> None:
    read = Mechanism.parse(line)
    assert str(read) == line
    assert mechanism is None or read == mechanism


@pytest.mark.parametrize("lines", EQUIVALENT, ids=lambda lines: lines[0])
def test_equal_mechanisms_have_one_line_and_one_hash(lines: tuple[str, ...]) -> None:
    read = [Mechanism.parse(line) for line in lines]
    assert {str(mechanism) for mechanism in read} == {lines[0]}
    assert len(set(read)) == 1


@settings(max_examples=500)
@given(mechanisms())
def test_parse_and_str_are_inverses(mechanism: Mechanism) -> None:
    line = str(mechanism)
    assert Mechanism.parse(line) == mechanism
    assert str(Mechanism.parse(line)) == line
    assert line.isprintable()


@given(mechanisms(), st.data())
def test_stages_come_in_any_order_and_with_any_white_space(mechanism: Mechanism, data: st.DataObject) -> None:
    shuffled: list[Stage] = data.draw(st.permutations(list(mechanism.list_written_stages())))
    space = st.sampled_from(["", " ", "  ", "\t", "\n", "\u00a0"])
    pieces = re.split(r"([|(),=])", " | ".join(map(str, shuffled)))
    line = "".join(data.draw(space) + piece.strip() + data.draw(space) for piece in pieces)
    # Where a slot holds several stages, their order is part of what is said.
    several = {slot: tuple(item for item in shuffled if item.slot == slot) for slot in SEVERAL}
    assert Mechanism.parse(line) == dataclasses.replace(mechanism, **several)  # type: ignore[arg-type]


@given(mechanisms())
def test_every_argument_may_be_written_out(mechanism: Mechanism) -> None:
    def whole(item: Stage) -> str:
        fields = [f"{name_argument(f.name)}={write(getattr(item, f.name))}" for f in dataclasses.fields(item)]
        return f"{item.name}({', '.join(fields)})"

    assert Mechanism.parse(" | ".join(whole(item) for _, item in mechanism.label_stages())) == mechanism


@given(mechanisms())
def test_a_mechanism_survives_copying_and_pickling(mechanism: Mechanism) -> None:
    assert copy.deepcopy(mechanism) == mechanism
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism


def test_parse_takes_a_mechanism_as_it_is() -> None:
    mechanism = Mechanism(Cosine())
    assert Mechanism.parse(mechanism) is mechanism


def test_the_order_of_value_stages_is_kept() -> None:
    first = Mechanism.parse("bypass | unit_values")
    second = Mechanism.parse("unit_values | bypass")
    assert first.values == (Bypass(), UnitValues())
    assert first != second
    assert str(second) == "dot | softmax | unit_values | bypass(alpha=0.5)"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"score": None}, "'score' of a mechanism is a Score stage, not None"),
        ({"score": Softmax()}, "'score' of a mechanism is a Score stage"),
        ({"score": Dot}, "'score' of a mechanism is a Score stage"),
        ({"causal": None}, "'causal' of a mechanism is a CausalMask stage"),
        ({"weights": "softmax"}, "'weights' of a mechanism is a Weights stage, not 'softmax'"),
        ({"values": Bypass()}, "'values' of a mechanism is a tuple of Value stages"),
        ({"values": [Bypass()]}, "'values' of a mechanism is a tuple of Value stages"),
        ({"output": (Bypass(),)}, "'output' of a mechanism is a tuple of Output stages"),
        ({"values": (Bypass(), Bypass(alpha=1))}, "'bypass' is there twice"),
        ({"values": (Bypass(on="q"), Bypass(on="q", alpha=1))}, "'bypass_q' is there twice"),
    ],
)
def test_a_mechanism_of_the_wrong_parts_is_refused(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(MechanismError, match=re.escape(said)):
        Mechanism(**arguments)


def test_a_stage_without_a_name_is_refused() -> None:
    @dataclasses.dataclass(frozen=True)
    class Unnamed(Dot):
        pass

    with pytest.raises(MechanismError, match=r'Unnamed has no name: put @stage\("name"\) above it'):
        Mechanism(score=Unnamed())


def test_an_interface_is_not_a_stage() -> None:
    with pytest.raises(TypeError, match="abstract"):
        Score()  # type: ignore[abstract]


def test_a_mechanism_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Mechanism().score = Cosine()  # type: ignore[misc]


def test_parameters_carry_the_name_of_their_stage() -> None:
    line = "additive(hidden=3) | relu(divide=learned) | bypass(learn=true) | bypass(on=q, learn=true) | gate"
    declared = Mechanism.parse(line).parameters(num_heads=2, head_dim=4, value_dim=5)
    assert {name: parameter.shape for name, parameter in declared.items()} == {
        "additive_query": (2, 3, 4),
        "additive_key": (2, 3, 4),
        "additive_out": (2, 3),
        "relu_exponent": (2,),
        "bypass_alpha": (2,),
        "bypass_q_alpha": (2,),
        "gate_weight": (2, 1, 8),
    }


def test_alpha_and_the_scalars_stay_out_of_weight_decay() -> None:
    line = "cosine(scale=learned) | relu(divide=learned) | bypass(learn=true) | value_residual"
    assert not any(p.has_weight_decay for p in Mechanism.parse(line).parameters(2, 4).values())
    assert all(p.has_weight_decay for p in Mechanism.parse("additive | gate").parameters(2, 4).values())


@given(mechanisms(moderate=True))
def test_every_stage_gets_its_own_parameters_back(mechanism: Mechanism) -> None:
    declared = mechanism.parameters(num_heads=2, head_dim=4)
    tensors = {name: torch.empty(p.shape) for name, p in declared.items()}
    for text, item in mechanism.label_stages():
        own = mechanism.params_of(item, tensors)
        assert set(own) == set(item.parameters(Dims(2, 4, 4)))
        assert all(tensor is tensors[f"{text}_{name}"] for name, tensor in own.items())


def test_a_stage_on_two_tensors_keeps_its_parameters_apart() -> None:
    mechanism = Mechanism.parse("bypass(learn=true) | bypass(on=q, learn=true)")
    tensors = {"bypass_alpha": torch.zeros(2), "bypass_q_alpha": torch.ones(2)}
    on_v, on_q = (mechanism.params_of(item, tensors) for item in mechanism.values)
    assert list(on_v) == list(on_q) == ["alpha"]
    assert on_v["alpha"] is tensors["bypass_alpha"]
    assert on_q["alpha"] is tensors["bypass_q_alpha"]


def test_the_baseline_learns_nothing() -> None:
    assert Mechanism().parameters(num_heads=2, head_dim=4) == {}


def test_all_slots_at_once_read_well() -> None:
    mechanism = Mechanism(
        Cosine(scale="learned"), Softmax(divide="n"), CausalMask("zero"), (ValueResidual(learn=False),),
        TokenDropout(0.25), (Gate(per="channel"), Penalize(strength=1)), SharedProjections("qk"),
    )  # fmt: skip
    assert str(mechanism) == (
        "cosine(scale=learned) | softmax(divide=n) | mask(zero) | value_residual(learn=false) | "
        "token_dropout(0.25) | gate(per=channel) | penalize(output, 1) | share(qk)"
    )


def test_a_line_is_read_once() -> None:
    assert Mechanism.parse("cosine | relu(divide=n)") is Mechanism.parse("cosine | relu(divide=n)")
