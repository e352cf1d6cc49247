"""The exact numbers that each way of tuning trains, for every family and head."""

import pytest
from torch import nn

import attnlab
from attnlab.errors import TrainingError
from attnlab.training.spec import Tuning
from attnlab.training.tuning.apply import apply_tuning
from attnlab.training.tuning.parts import count_parameters
from tests.install.models import WIDTH, build
from tests.training.tuning.models import HEADS, way

D, LAYERS, INNER = WIDTH, 2, 48
DENSE = D * D + D
CLASSES = {
    "bert": 2 * D + 2,
    "albert": 2 * D + 2,
    "roberta": DENSE + 2 * D + 2,  # a dense layer before its linear one
    "distilbert": DENSE + 2 * D + 2,
    "gpt2": 2 * D,  # no bias
    "llama grouped": 2 * D,
}
"""A head for two classes: linear, and what a family puts before it."""


def trained(name: str, head: str, tuning: Tuning, line: str = "dot | softmax") -> dict[str, int]:
    """Return what trains by part, the parts that do not left out."""
    model = attnlab.install(build(name, HEADS[head], max_position_embeddings=200), line)
    apply_tuning(model, tuning, has_new_head=head in ("classes", "span"))
    counts = count_parameters(model)
    expected = sum(p.numel() for p in model.parameters() if p.requires_grad)
    assert counts.num_trained == expected
    assert counts.num_total == sum(p.numel() for p in model.parameters())
    return {part: n for part, n in counts.trained.items() if n}


@pytest.mark.parametrize("name", CLASSES)
def test_a_head_for_two_classes(name: str) -> None:
    assert trained(name, "classes", Tuning(mode="head")) == {"head": CLASSES[name]}


@pytest.mark.parametrize("name", ["bert", "roberta", "distilbert", "gpt2"])
def test_a_head_for_spans_is_linear(name: str) -> None:
    assert trained(name, "span", Tuning(mode="head")) == {"head": 2 * D + 2}


@pytest.mark.parametrize(("name", "part"), [("bert", "classifier"), ("roberta", "classifier.out_proj")])
def test_the_linear_part_has_two_numbers_a_dimension_and_two(name: str, part: str) -> None:
    model = build(name, HEADS["classes"])
    assert sum(p.numel() for p in model.get_submodule(part).parameters()) == 2 * D + 2


def test_a_prompt_of_128_with_a_linear_head_is_130d_and_2() -> None:
    found = trained("bert", "classes", Tuning(mode="prompt"))
    assert found == {"prompt": 128 * D, "head": 2 * D + 2}
    assert sum(found.values()) == 130 * D + 2
    assert sum(trained("distilbert", "span", Tuning(mode="prompt")).values()) == 130 * D + 2


@pytest.mark.parametrize("name", CLASSES)
def test_a_prompt_is_its_length_times_the_embedding(name: str) -> None:
    embedding = 16 if name == "albert" else D
    assert trained(name, "classes", Tuning(mode="prompt", length=7)) == {"prompt": 7 * embedding, "head": CLASSES[name]}


@pytest.mark.parametrize("name", ["bert", "roberta", "distilbert", "gpt2", "llama", "llama grouped"])
def test_a_prefix_is_keys_and_values_of_every_layer(name: str) -> None:
    key_width = D // 2 if name == "llama grouped" else D
    found = trained(name, "classes", Tuning(mode="prefix", length=7))
    assert found == {"prefix": 2 * 7 * LAYERS * key_width, "head": CLASSES.get(name, 2 * D)}


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("bert", [(D, D), (D, D)]),
        ("roberta", [(D, D), (D, D)]),
        ("distilbert", [(D, D), (D, D)]),
        ("gpt2", [(D, 3 * D)]),
        ("llama grouped", [(D, D), (D, D // 2)]),
    ],
)
def test_lora_is_the_rank_times_both_widths_of_a_target(name: str, sizes: list[tuple[int, int]]) -> None:
    expected = {"lora": LAYERS * 4 * sum(map(sum, sizes)), "head": CLASSES[name]}
    assert trained(name, "classes", way("lora", name)) == expected


def test_lora_takes_the_targets_it_is_given() -> None:
    tuning = Tuning(mode="lora", rank=2, targets=("intermediate.dense", "encoder.layer.0.attention.self.key"))
    expected = 2 * (LAYERS * (D + INNER) + 2 * D)
    assert trained("bert", "classes", tuning) == {"lora": expected, "head": 2 * D + 2}


@pytest.mark.parametrize("mode", ["prompt", "prefix", "lora"])
@pytest.mark.parametrize(("name", "head"), [("bert", "masked"), ("gpt2", "causal"), ("llama", "causal")])
def test_a_language_models_head_stays_frozen_beside_what_is_added(name: str, head: str, mode: str) -> None:
    assert set(trained(name, head, way(mode, name))) == {mode}


def test_the_head_of_a_language_model_is_what_is_not_tied() -> None:
    # BERT's: a dense layer, its norm, and a bias for each token; the matrix is the input embedding.
    assert trained("bert", "masked", Tuning(mode="head")) == {"head": DENSE + 2 * D + 64}
    assert trained("llama", "causal", Tuning(mode="head")) == {"head": 64 * D}


@pytest.mark.parametrize("head", ["classes", "causal"])
def test_in_full_tuning_everything_trains_and_what_is_shared_counts_once(head: str) -> None:
    model = build("gpt2", HEADS[head])
    whole = sum(p.numel() for p in model.parameters())
    body = sum(p.numel() for p in model.base_model.parameters())
    assert whole - body == (0 if head == "causal" else 2 * D)
    found = trained("gpt2", head, Tuning(), "additive | softmax")
    mechanism = LAYERS * 4 * (2 * 8 * 8 + 8)
    extra = (200 - 66) * D  # longer positions in `trained`
    assert found == {"body": body + extra, "mechanism": mechanism} | ({"head": 2 * D} if head == "classes" else {})


def test_tied_projections_count_once() -> None:
    plain = trained("bert", "classes", Tuning())
    tied = trained("bert", "classes", Tuning(), "dot | softmax | share(qk)")
    assert plain["body"] - tied["body"] == LAYERS * DENSE


def test_a_mechanisms_parameters_belong_to_the_frozen_body() -> None:
    for mode in ("head", "prompt", "prefix", "lora"):
        model = attnlab.install(build("bert", HEADS["classes"]), "additive | softmax | bypass(learn=true)")
        apply_tuning(model, way(mode), has_new_head=True)
        counts = count_parameters(model)
        assert counts.total["mechanism"] > 0
        assert counts.trained["mechanism"] == counts.trained["body"] == 0


def test_it_is_said_in_a_sentence() -> None:
    model = attnlab.install(build("bert", HEADS["classes"]), "dot | softmax")
    apply_tuning(model, Tuning(mode="prompt", length=40), has_new_head=True)
    assert count_parameters(model).sentence == "trains 1,346 of 21,698 parameters: prompt 1,280, head 66"
    model.requires_grad_(False)
    assert count_parameters(model).sentence == "trains 0 of 21,698 parameters: none"


def test_a_wrapper_is_looked_through() -> None:
    model = attnlab.install(build("bert", HEADS["classes"]), "dot | softmax")
    apply_tuning(model, way("prompt"), has_new_head=True)
    wrapped = nn.Sequential(model)
    assert count_parameters(wrapped) == count_parameters(model)
    with pytest.raises(TrainingError, match="Linear holds no Hugging Face model"):
        count_parameters(nn.Linear(2, 2))
