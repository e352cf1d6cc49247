"""Lines by layer: parse and str are inverses, each layer has its mechanism, and an error points at the spot."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

import attnlab
from attnlab.errors import MechanismError
from attnlab.mechanisms import CATALOG, LayeredMechanism, Line, Mechanism, parse_line, parse_mechanism
from attnlab.mechanisms.layered import LayerPart
from tests.mechanisms.strategies import mechanisms

WINDOW, FULL = Mechanism.parse("dot | softmax | window(64)"), Mechanism.parse("dot | softmax")
HYBRID = "dot | softmax | window(64) @ 0-4 every 6; dot | softmax @ 5 every 6"


def layered(line: str) -> LayeredMechanism:
    mechanism = parse_line(line)
    assert isinstance(mechanism, LayeredMechanism)
    return mechanism


@pytest.mark.parametrize(
    ("line", "canonical"),
    [
        (HYBRID, HYBRID),
        ("dot | softmax | window(64) @ 0-4; dot | softmax @ 5", "dot | softmax | window(64) @ 0-4; dot | softmax @ 5"),
        (" softmax|dot@5 ; window( 64 )@ 4, 0-3 ", "dot | softmax | window(64) @ 0-4; dot | softmax @ 5"),
        ("baseline @ 5; sliding-window @ 0-4", "dot | softmax | window(64) @ 0-4; dot | softmax @ 5"),
        ("dot @ 0; relu @ 1; softmax @ 2,7", "dot | softmax @ 0,2,7; dot | relu @ 1"),
        ("dot | softmax @ 0 every 1", "dot | softmax @ 0 every 1"),
        ("dot @ 0\n; relu @\t1", "dot | softmax @ 0; dot | relu @ 1"),
    ],
)
def test_parse_and_str_are_inverses(line: str, canonical: str) -> None:
    mechanism = layered(line)
    assert str(mechanism) == canonical
    assert parse_line(canonical) == mechanism == parse_line(mechanism)
    assert hash(parse_line(canonical)) == hash(mechanism)
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism


@given(st.lists(mechanisms(), min_size=1, max_size=4, unique=True), st.data())
def test_any_mechanisms_come_back(chosen: list[Mechanism], data: st.DataObject) -> None:
    owners = data.draw(st.lists(st.sampled_from(chosen), min_size=1, max_size=8))
    every = data.draw(st.sampled_from([None, len(owners)]))
    parts = [LayerPart(owner, (index,)) for index, owner in enumerate(owners)]
    mechanism = LayeredMechanism(tuple(parts), every)
    assert parse_line(str(mechanism)) == mechanism
    assert [mechanism.at_layer(index) for index in range(len(owners))] == owners


def test_each_layer_has_its_mechanism() -> None:
    hybrid = layered(HYBRID)
    assert [hybrid.at_layer(index) == FULL for index in range(13)] == [index in (5, 11) for index in range(13)]
    assert hybrid.distinct == (WINDOW, FULL)
    fixed = layered("dot | softmax @ 0,2; dot | softmax | window(64) @ 1")
    assert [fixed.at_layer(index) for index in range(3)] == [FULL, WINDOW, FULL]
    with pytest.raises(MechanismError, match="no mechanism for layer 3"):
        fixed.at_layer(3)
    assert FULL.at_layer(7) is FULL
    assert FULL.distinct == (FULL,)


@pytest.mark.parametrize(
    ("line", "message", "marked"),
    [
        ("dot @ 0-4; relu @ 3", "layer 3 is given twice", "3"),
        ("dot @ 0,0", "layer 0 is given twice", "0"),
        ("dot @ 0-4; dot | softmax", "does not say which layers have it; end it with '@ 0-4'", "dot | softmax"),
        ("dot; relu @ 1", "does not say which layers have it", "dot"),
        ("dot @ 4-0", "a range is ascending; write 0-4", "4-0"),
        ("dot @ all", "layers are numbers such as 5 and ranges such as 0-4, not 'all'", "all"),
        ("dot @ -1", "not '-1'", "-1"),
        ("dot @ 0-6 every 6", "layer 6 is beyond 'every 6', whose layers are 0 to 5", "0-6 every 6"),
        ("dot @ 0-4 every 6; relu @ 5", "the first part has 'every 6', and all parts must agree", "5"),
        ("dot @ 0-4; relu @ 5 every 6", "the first part has no 'every', and all parts must agree", "5 every 6"),
        ("dot @ 0-3 every 6; relu @ 5 every 6", "layer 4 of 'every 6' has no mechanism", ""),
        ("dot @ 0 every six", "a whole number from 1 to 1000, not 'six'", "six"),
        ("dot @ 0 every", "a number is missing after 'every'", "every"),
        ("dot @ 0 every 1 2", "expected ';' or the end of the line, found '2'", "2"),
        ("dot @ 0 1", "expected ',' or 'every', found '1'", "1"),
        ("dot @ 0 @ 1", "expected ',' or 'every', found '@'", "@"),
        ("dot @ 0,", "a layer is missing after ','", ","),
        ("dot @", "layers are missing after '@'", "@"),
        ("@ 3", "a mechanism is missing here", "@ 3"),
        ("dot @ 3;", "a mechanism is missing here", ""),
        ("dot | softmax @ 0; cosin | softmax @ 1", "unknown stage 'cosin', did you mean 'cosine'?", "cosin"),
        ("dot @ 0; dot | window(0) @ 1", "window: width must be at least 1", "0"),
    ],
)
def test_an_error_points_at_the_spot(line: str, message: str, marked: str) -> None:
    with pytest.raises(MechanismError) as caught:
        parse_line(line)
    first, shown, marker = str(caught.value).split("\n")
    assert message in first
    assert shown == f"    {line}"
    start, end = marker.index("^"), len(marker)
    assert shown[start:end].strip() == marked
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_parse_reads_lines_by_layer_too() -> None:
    hybrid = Mechanism.parse(HYBRID)
    assert hybrid == Mechanism.parse("gemma-hybrid") == Mechanism.parse(hybrid) == parse_line(HYBRID)
    assert str(hybrid) == HYBRID


def test_a_mechanism_of_one_layer_is_asked_for_where_it_is_needed() -> None:
    one: Line
    for one in (HYBRID, "gemma-hybrid", parse_line(HYBRID)):  # type: ignore[assignment]
        with pytest.raises(MechanismError, match=r"one mechanism is needed here; pass one part, such as 'dot \| soft"):
            parse_mechanism(one)  # type: ignore[arg-type]
        with pytest.raises(MechanismError, match="gives mechanisms by layer"):
            attnlab.explain(one, 8)  # type: ignore[arg-type]
    with pytest.raises(MechanismError, match="not int"):
        parse_line(3)  # type: ignore[arg-type]


def test_parts_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(MechanismError, match="layer 0 is given twice"):
        LayeredMechanism((LayerPart(FULL, (0,)), LayerPart(WINDOW, (0,))))
    with pytest.raises(MechanismError, match="at least one layer"):
        LayeredMechanism(())
    with pytest.raises(MechanismError, match="each of the layers 0 to 2"):
        LayeredMechanism((LayerPart(FULL, (0,)),), every=3)


def test_it_shows_its_layers() -> None:
    hybrid = CATALOG["gemma-hybrid"].mechanism
    assert repr(hybrid) == f"Mechanism.parse({HYBRID!r})"
    assert hybrid.facts().rows == [("0-4 every 6", str(WINDOW)), ("5 every 6", str(FULL))]
    assert [stage.name for stage in hybrid.list_written_stages()] == ["dot", "softmax", "window", "dot", "softmax"]
