"""Traces: norms, entropy of attention a head, α and exponents, whatever is tuned."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from attnlab.training import Tuning, build
from attnlab.training.loop.trace import compute_entropies, compute_weight_norms, trace
from tests.training.runs import lines_of, small, trained


def traced(**changes: Any) -> tuple[Any, Any]:
    """Return a model and a batch."""
    job = build(small(**changes))
    stream = job.streams[0]
    return job.model, stream.make(stream.arrangement.rows(0, 0), 0)


def test_the_entropy_of_equal_weights_is_the_log_of_what_a_query_sees() -> None:
    model, batch = traced()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "c_attn" in name:
                parameter.zero_()
    found = compute_entropies(model, batch)
    assert list(found) == ["transformer.h.0.attn", "transformer.h.1.attn"]
    lengths = batch["attention_mask"][:4].sum(1).tolist()
    by_hand = [math.log(seen) for length in lengths for seen in range(1, int(length) + 1)]
    for heads in found.values():
        assert heads == pytest.approx([sum(by_hand) / len(by_hand)] * 2, rel=1e-6)


def test_token_types_are_what_the_model_trains_with() -> None:
    model, batch = traced(task="squad")
    without = {name: tensor for name, tensor in batch.items() if name != "token_type_ids"}
    assert compute_entropies(model, batch) != compute_entropies(model, without)


@pytest.mark.parametrize("task", ["squad", "mlm", "clm"])
@pytest.mark.parametrize("mode", ["prompt", "prefix", "lora"])
def test_every_tuning_can_be_traced(task: str, mode: Any) -> None:
    model, batch = traced(task=task, tuning=Tuning(mode=mode, length=3, rank=2))
    found = compute_entropies(model, batch)
    assert len(found) == 2
    assert all(math.isfinite(value) and value > 0 for heads in found.values() for value in heads)


def test_learned_numbers_of_a_mechanism_are_traced() -> None:
    model, batch = traced(mechanism="minkowski(p=learned) | softmax | bypass(alpha=0.5, learn=true, per=head)")
    found = trace(model, batch)
    names = {name.rpartition(".")[2] for name in found if "h.0" in name}
    assert names == {"minkowski_power", "bypass_alpha", "alpha_now", "entropy"}
    assert found["transformer.h.0.attn.bypass_alpha"] == [0.5, 0.5]
    assert found["weight_norm"] == pytest.approx(sum(norm**2 for norm in compute_weight_norms(model).values()) ** 0.5)


def test_a_scheduled_alpha_is_traced_as_it_is_then(tmp_path: Path) -> None:
    mechanism = "dot | softmax | bypass(alpha=0.6, schedule=warmup)"
    trained(small(mechanism=mechanism, trace_every=2), tmp_path)
    seen = [line["transformer.h.0.attn.alpha_now"] for line in lines_of(tmp_path, "trace")]
    assert len(seen) == 3
    assert seen == sorted(seen)
    assert seen[0] < seen[-1] == 0.6


@pytest.mark.usefixtures("mixers")
def test_a_layer_with_a_mixer_has_no_entropy_and_its_small_parameters_are_traced(tmp_path: Path) -> None:
    model, batch = traced(mechanism="mixer(average)")
    assert compute_entropies(model, batch) == {}
    assert trace(model, batch)["transformer.h.1.attn.module.decay"] == pytest.approx(torch.linspace(-2, 2, 16).tolist())
    trained(small(mechanism="mixer(stepping) @ 0; dot | softmax @ 1", trace_every=3), tmp_path)
    for line in lines_of(tmp_path, "trace"):
        assert "transformer.h.0.attn.module.decay" in line
        assert "transformer.h.0.attn.entropy" not in line
        assert len(line["transformer.h.1.attn.entropy"]) == 2


def test_weights_that_do_not_sum_to_one_have_an_entropy() -> None:
    model, batch = traced(mechanism="cosine | relu(divide=n)")
    assert all(math.isfinite(value) for heads in compute_entropies(model, batch).values() for value in heads)
