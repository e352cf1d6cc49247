"""Mixers in a line: registered by name, alone, and with errors that say what to write."""

import pytest
import torch
from torch import Tensor, nn

import attnlab
from attnlab.errors import MechanismError, RequestError
from attnlab.mechanisms import MIXERS, Mechanism, Mixer, mixer, parse_line
from attnlab.mechanisms.arguments import MixerName
from tests.mixers import Average

pytestmark = pytest.mark.usefixtures("mixers")


def test_a_line_writes_what_it_reads() -> None:
    parsed = Mechanism.parse(" mixer( average )")
    assert str(parsed) == "mixer(average)"
    assert Mechanism.parse(str(parsed)) == parsed
    assert parsed.mixer == Mixer(MixerName("average"))
    by_layer = "mixer(average) @ 0 every 2; dot | softmax @ 1 every 2"
    assert str(parse_line(by_layer)) == by_layer


@pytest.mark.parametrize(
    ("line", "problem", "marked"),
    [
        ("mixer(averge)", "no mixer is named 'averge', did you mean 'average'?", "averge"),
        ("mixer(quux)", '@attnlab.mixer("quux") above a class registers one', "quux"),
        ("mixer(3)", "module must be the name of a mixer, not '3'", "3"),
        ("mixer", "mixer needs module=", "mixer"),
        ("mixer(average) | softmax", "takes the place of the whole attention.*remove 'softmax'", "softmax"),
        ("window(4) | mixer(average)", "remove 'window(4)'", "window"),
        ("mixer(average) | mixer(peeking)", "remove 'mixer(peeking)'", "mixer"),
    ],
)
def test_a_mistake_is_marked(line: str, problem: str, marked: str) -> None:
    with pytest.raises(MechanismError) as error:
        Mechanism.parse(line)
    message, shown, marker = str(error.value).split("\n")
    assert all(part in message for part in problem.split(".*"))
    start, end = marker.index("^"), marker.rindex("^") + 1
    assert shown[start:end] == marked


def test_no_other_stage_stands_beside_it_in_python() -> None:
    with pytest.raises(MechanismError, match=r"remove 'cosine'"):
        Mechanism(mixer=Mixer(MixerName("average")), score=Mechanism.parse("cosine").score)


def test_calls_without_a_model_are_refused() -> None:
    q, k, v = torch.randn(3, 1, 1, 4, 4)
    for call in (
        lambda: attnlab.attend(q, k, v, "mixer(average)"),
        lambda: attnlab.weights(q, k, "mixer(average)"),
        lambda: attnlab.Attention("mixer(average)", num_heads=1, head_dim=4),
        lambda: attnlab.explain("mixer(average)", length=8),
    ):
        with pytest.raises(RequestError, match=r"in place of attention.*attnlab.install\(model, 'mixer\(average\)'\)"):
            call()


def make(**methods: object) -> type[nn.Module]:
    return type("Made", (nn.Module,), {"__module__": "made", **methods})


def take_width(self: nn.Module, width: int) -> None:
    nn.Module.__init__(self)


def take_x(self: nn.Module, x: Tensor) -> Tensor:
    return x


@pytest.mark.parametrize(
    ("methods", "problem"),
    [
        ({"forward": take_x}, r"must take the model's width: write `def __init__\(self, width\)`"),
        ({"__init__": lambda self, width, num_head: None, "forward": take_x}, "'num_head'.*did you mean 'num_heads'"),
        ({"__init__": lambda self, width, rate: None, "forward": take_x}, "'rate', which it is not given.*a default"),
        ({"__init__": take_width}, r"has no forward: write `def forward\(self, x\)`"),
        ({"__init__": take_width, "forward": lambda self: None}, r"called with \(x\); write `def forward\(self, x\)`"),
        ({"__init__": take_width, "forward": lambda self, x, positions: x}, "takes 'positions', which it is not given"),
        ({"__init__": take_width, "forward": take_x, "step": take_x}, r"called with \(x, state\); write `def step\("),
    ],
)
def test_a_class_that_cannot_be_called_is_refused(methods: dict[str, object], problem: str) -> None:
    with pytest.raises(MechanismError, match=problem):
        mixer("made")(make(**methods))
    assert "made" not in MIXERS


def test_names_are_words_and_belong_to_one_class() -> None:
    with pytest.raises(MechanismError, match="lower case letters"):
        mixer("My Mixer")
    with pytest.raises(MechanismError, match=r"derives from torch.nn.Module, not <function"):
        mixer("made")(take_x)  # type: ignore[type-var]
    with pytest.raises(MechanismError, match=r"named 'average' exists already: tests.mixers.Average"):
        mixer("average")(make(__init__=take_width, forward=take_x))
    assert mixer("average")(Average) is Average  # a notebook cell that is run again


def test_the_constructor_gets_what_it_names() -> None:
    module = Mixer(MixerName("peeking")).build(8, num_heads=2, layer=3, num_layers=5, is_causal=True)
    assert module.place == (3, 2)
    mixer("broken")(make(__init__=lambda self, width: 1 // 0, forward=take_x))
    with pytest.raises(MechanismError, match=r"constructor of 'mixer\(broken\)' raised ZeroDivisionError for width=8"):
        Mixer(MixerName("broken")).build(8)
