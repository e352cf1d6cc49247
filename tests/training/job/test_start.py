"""Initial weights: each a function of the seed and its name, drawn as the architecture says."""

import math
from typing import Any

import pytest
import torch
import transformers

from attnlab.tasks import load
from attnlab.training import Start, initialise
from attnlab.training.job.weights import build_model
from tests.tasks.models import SIZES
from tests.tasks.tokenizers import byte_level, wordpiece

VARIANTS = [
    "additive | softmax",
    "minkowski(p=learned) | softmax | bypass(alpha=0.5, learn=true, per=head)",
    "cosine(scale=learned) | relu(divide=learned)",
    "dot | softmax | gate",
]


def built(kind: str, task: str, mechanism: str = "dot | softmax", seed: int = 0) -> dict[str, torch.Tensor]:
    """Return the initial weights of a model for a task."""
    tokenizer = byte_level() if kind == "gpt2" else wordpiece()
    start = Start(architecture=kind, config=SIZES[kind], mechanism=mechanism)
    return dict(build_model(start, load(task), tokenizer, seed, str).state_dict())


@pytest.mark.parametrize("mechanism", VARIANTS)
@pytest.mark.parametrize(("kind", "task"), [("gpt2", "clm"), ("bert", "mlm")], ids=["gpt2", "bert"])
def test_arms_begin_alike_in_all_they_share(kind: str, task: str, mechanism: str) -> None:
    one, other = built(kind, task), built(kind, task, mechanism)
    assert one.keys() < other.keys()
    for name, tensor in one.items():
        assert torch.equal(tensor, other[name]), name


def test_another_seed_gives_other_weights_and_the_same_seed_the_same() -> None:
    one, again, other = (built("gpt2", "clm", "additive | softmax", seed) for seed in (0, 0, 1))
    drawn = [name for name, tensor in one.items() if tensor.dim() == 2 and "attnlab" not in name]
    assert all(torch.equal(one[name], again[name]) for name in one)
    assert drawn
    assert not any(torch.equal(one[name], other[name]) for name in drawn)


def test_no_two_weights_are_drawn_alike() -> None:
    weights = built("bert", "mlm")
    seen = [tensor for name, tensor in weights.items() if tensor.shape == (16, 16) and "decoder" not in name]
    assert len(seen) > 6
    for at, one in enumerate(seen):
        assert not any(torch.equal(one, other) for other in seen[at + 1 :])


@pytest.mark.parametrize(
    ("kind", "tasks"), [("bert", ("mlm", "squad", "boolq")), ("gpt2", ("clm", "boolq"))], ids=["bert", "gpt2"]
)
def test_heads_of_every_kind_share_the_body(kind: str, tasks: tuple[str, ...]) -> None:
    prefix = "bert." if kind == "bert" else "transformer."
    first, *rest = (built(kind, task) for task in tasks)
    for other in rest:
        shared = [name for name in first if name.startswith(prefix) and name in other]
        assert len(shared) > 20
        assert [name for name in shared if not torch.equal(first[name], other[name])] == []


def test_torchs_own_generator_is_left_alone() -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    one = built("gpt2", "clm")
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(6)
    other = built("gpt2", "clm")
    assert all(torch.equal(one[name], other[name]) for name in one)


def wide(kind: str) -> Any:
    """Return a config wide enough for a standard deviation to be measured."""
    sizes: dict[str, Any] = {
        "gpt2": {"n_embd": 128, "n_layer": 3, "n_head": 2, "n_positions": 64},
        "bert": {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128},
        "roberta": {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128},
        "llama": {
            "hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128,
            "num_key_value_heads": 2
        },
    }  # fmt: skip
    marks = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
    return transformers.AutoConfig.for_model(kind, vocab_size=200, **marks, **sizes[kind])


def made(head: str, kind: str) -> Any:
    """Build a model as transformers does."""
    return getattr(transformers, head).from_config(wide(kind))


@pytest.mark.parametrize("kind", ["gpt2", "bert", "roberta", "llama"])
def test_distributions_are_those_of_transformers(kind: str) -> None:
    head = "AutoModelForCausalLM" if kind in ("gpt2", "llama") else "AutoModelForMaskedLM"
    with torch.random.fork_rng():
        torch.manual_seed(0)
        theirs = made(head, kind)
    own = made(head, kind)
    initialise(own, 1)
    for (name, mine), their in zip(own.state_dict().items(), theirs.state_dict().values(), strict=True):
        if mine.dim() < 2:
            assert torch.equal(mine, their), name
        else:
            # Both are estimates from n draws, each off by std / √(2n).
            bound = 6 * float(their.std()) / math.sqrt(mine.numel())
            assert float(mine.std()) == pytest.approx(float(their.std()), abs=bound), name
            assert float(mine.mean()) == pytest.approx(0, abs=bound), name
            assert not torch.equal(mine, their), name


def test_gpt2s_residual_projections_are_scaled_by_depth() -> None:
    model = made("AutoModelForCausalLM", "gpt2")
    initialise(model, 2)
    for name, parameter in model.state_dict().items():
        if name.endswith("c_proj.weight"):
            assert float(parameter.std()) == pytest.approx(0.02 / math.sqrt(6), rel=0.05), name
        elif name.endswith("c_attn.weight"):
            assert float(parameter.std()) == pytest.approx(0.02, rel=0.05), name


def test_padding_starts_at_zero_where_transformers_says_so() -> None:
    model = made("AutoModelForMaskedLM", "bert")
    initialise(model, 2)
    assert not model.bert.embeddings.word_embeddings.weight[1].any()


def test_only_what_is_named_is_drawn() -> None:
    model = made("AutoModelForSequenceClassification", "bert")
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    initialise(model, 4, {"classifier.weight"})
    changed = [name for name, tensor in model.state_dict().items() if not torch.equal(tensor, before[name])]
    assert changed == ["classifier.weight"]
    once = model.classifier.weight.clone()
    initialise(model, 4, set())
    assert torch.equal(model.classifier.weight, once)
    initialise(model, 4)
    assert torch.equal(model.classifier.weight, once)
