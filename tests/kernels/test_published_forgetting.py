"""Forgetting, the delta rule, differential heads, norms and gates are what their authors published, in fp64, with
gradients: compared with flash-linear-attention's naive functions and with transformers' own modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import DiffLlamaConfig, Qwen3NextConfig
from transformers.models.diffllama.modeling_diffllama import DiffLlamaAttention
from transformers.models.qwen3_next.modeling_qwen3_next import Qwen3NextAttention

import attnlab

from .published import (
    BATCH,
    DIM,
    HEADS,
    TOLERANCE,
    assert_equal,
    draw,
    draw_inputs,
    draw_inputs_with_x,
    draw_parameters,
    fp32_as_fp64,
    import_naive,
)

LONG = 150
"""More than two chunks."""


def swap(*tensors: Tensor) -> list[Tensor]:
    """Exchange heads and length: flash-linear-attention has the length first."""
    return [tensor.transpose(1, 2) for tensor in tensors]


def log_gate(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return log σ(x W + b), [b n h] or [b n h d]."""
    axes = "bnm,hm->bnh" if weight.dim() == 2 else "bnm,hdm->bnhd"
    return functional.logsigmoid(torch.einsum(axes, x, weight) + bias)


def compare(line: str, naive: Callable[..., Any], make: Callable[..., dict[str, Tensor]], length: int = LONG) -> None:
    """Compare a line with a naive function of fla-core; `make` returns its arguments beside q, k and v."""
    needs_x = attnlab.mechanisms.Mechanism.parse(line).find_stages_needing("x")
    inputs = draw_inputs_with_x(length) if needs_x else draw_inputs(length=length)

    def publish(q: Tensor, k: Tensor, v: Tensor, **rest: Tensor) -> Tensor:
        q, k, v = swap(q, k, v)
        with fp32_as_fp64():
            out = naive(q=q, k=k, v=v, **make(**rest))
        return swap(out[0] if isinstance(out, tuple) else out)[0]

    assert_equal(line, publish, inputs, draw_parameters(line), causal=True)


def test_forgetting_under_softmax_is_forgetting_attention() -> None:
    naive = import_naive("forgetting_attn", "naive_forgetting_attn")
    compare(
        "dot | softmax | forget", naive,
        lambda x, forget_weight, forget_bias: {"g": log_gate(x, forget_weight, forget_bias)},
    )  # fmt: skip


def test_forgetting_in_a_window_is_forgetting_attention() -> None:
    naive = import_naive("forgetting_attn", "naive_forgetting_attn")
    compare(
        "dot | softmax | window(40) | forget", lambda **given: naive(**given, window_size=40),
        lambda x, forget_weight, forget_bias: {"g": log_gate(x, forget_weight, forget_bias)},
    )  # fmt: skip


def test_a_fixed_rate_is_retention() -> None:
    naive = import_naive("retention", "naive_retention")

    def publish(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        with fp32_as_fp64():
            out: Tensor = naive(q, k, v)
        return out

    assert_equal("dot | identity | forget(rate=retention)", publish, draw_inputs(length=LONG), {}, causal=True)


def test_forgetting_per_channel_is_gated_linear_attention() -> None:
    naive = import_naive("gla", "naive_recurrent_gla")
    compare(
        "dot | identity | forget(per=channel)", naive,
        lambda x, forget_weight, forget_bias: {"gk": log_gate(x, forget_weight, forget_bias)}, length=70,
    )  # fmt: skip


def test_forgetting_per_head_is_the_scalar_form() -> None:
    naive = import_naive("simple_gla", "naive_recurrent_simple_gla")
    compare(
        "dot | identity | forget", naive,
        lambda x, forget_weight, forget_bias: {"g": log_gate(x, forget_weight, forget_bias)},
    )  # fmt: skip


def test_the_delta_rule_is_delta_net() -> None:
    naive = import_naive("delta_rule", "delta_rule_recurrence")
    line = "dot | identity | norm(l2) | delta"

    def publish(q: Tensor, k: Tensor, v: Tensor, x: Tensor, delta_weight: Tensor) -> Tensor:
        q, k = (t / t.norm(dim=-1, keepdim=True) for t in (q, k))
        with fp32_as_fp64():
            out: Tensor = naive(q, k, v, torch.sigmoid(torch.einsum("bnm,hm->bhn", x, delta_weight)))[0]
        return out

    assert_equal(line, publish, draw_inputs_with_x(LONG), draw_parameters(line), causal=True)


def test_the_delta_rule_with_forgetting_is_gated_delta_net() -> None:
    naive = import_naive("gated_delta_rule", "naive_recurrent_gated_delta_rule")
    line = "dot | identity | forget | norm(l2) | delta"

    def publish(
        q: Tensor, k: Tensor, v: Tensor, x: Tensor, forget_weight: Tensor, forget_bias: Tensor, delta_weight: Tensor
    ) -> Tensor:
        q, k = (t / t.norm(dim=-1, keepdim=True) for t in (q, k))
        beta = torch.sigmoid(torch.einsum("bnm,hm->bnh", x, delta_weight))
        with fp32_as_fp64():
            out = naive(*swap(q, k, v), beta, log_gate(x, forget_weight, forget_bias))[0]
        return swap(out)[0]

    assert_equal(line, publish, draw_inputs_with_x(LONG), draw_parameters(line), causal=True)


def test_positive_features_divided_by_their_sum_are_linear_attention() -> None:
    naive = import_naive("linear_attn", "naive_recurrent_linear_attn")

    def publish(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k = (functional.elu(t) + 1 for t in (q, k))
        with fp32_as_fp64():
            out = naive(*swap(q, k, v), normalize=True)[0]
        return swap(out)[0]

    assert_equal(
        "dot | identity(divide=sum) | feature(elu1)", publish, draw_inputs(length=LONG), {}, causal=True
    )  # fmt: skip


def run_module(module: Any, x: Tensor) -> Tensor:
    """Run a causal attention module of transformers, without a rotation and without its output projection."""
    length = x.shape[1]
    mask = torch.full((length, length), -torch.inf, dtype=torch.float64).triu(1)[None, None]
    width = module.head_dim
    turn = (torch.ones(1, length, width, dtype=torch.float64), torch.zeros(1, length, width, dtype=torch.float64))
    module.o_proj = nn.Identity()
    with fp32_as_fp64():
        out: Tensor = module(x, turn, mask)[0]
    return out


def project(module: Any, x: Tensor, *names: str) -> list[Tensor]:
    """Return the projections of a module, split by heads."""
    projected = (getattr(module, name)(x) for name in names)
    return [t.unflatten(-1, (-1, module.head_dim)).transpose(1, 2) for t in projected]


@pytest.mark.parametrize("layer", [0, 5])
def test_differential_heads_are_diffllama(layer: int) -> None:
    torch.manual_seed(0)
    sizes = {"hidden_size": HEADS * DIM, "num_attention_heads": HEADS, "num_key_value_heads": HEADS}
    options: Any = {**sizes, "attn_implementation": "eager", "rms_norm_eps": 1e-5}
    config = DiffLlamaConfig(**options)
    module = DiffLlamaAttention(config, layer).double()
    x = draw(BATCH, 37, HEADS * DIM)
    expected = run_module(module, x)
    names = {"query1": "lambda_q1", "key1": "lambda_k1", "query2": "lambda_q2", "key2": "lambda_k2"}
    p = {f"differential_{ours}": getattr(module, theirs)[None] for ours, theirs in names.items()}
    q, k, v = project(module, x, "q_proj", "k_proj", "v_proj")
    out = attnlab.attend(q, k, v, "dot | softmax | differential", causal=True, parameters=p, layer=layer)
    merged = out.transpose(1, 2).flatten(2)
    torch.testing.assert_close(merged, expected, rtol=TOLERANCE, atol=TOLERANCE)
    leaves = [x, *(getattr(module, name) for name in names.values())]
    cotangent = draw(*expected.shape, seed=9).detach()
    ours, theirs = (torch.autograd.grad(y, leaves, cotangent, retain_graph=True) for y in (merged, expected))
    for mine, published in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, published, rtol=1e-9, atol=1e-9)


def test_norms_and_a_gate_from_x_are_qwen3_next() -> None:
    torch.manual_seed(0)
    sizes = {"hidden_size": 48, "num_attention_heads": HEADS, "num_key_value_heads": 2, "head_dim": DIM}
    options: Any = {**sizes, "attn_implementation": "eager", "rms_norm_eps": 1e-6}
    config = Qwen3NextConfig(**options)
    module: Any = Qwen3NextAttention(config, 0).double()
    for norm in (module.q_norm, module.k_norm):
        norm.weight.data = draw(DIM, seed=3).detach()
    x = draw(BATCH, 37, 48)
    expected = run_module(module, x)
    # The query's projection holds a query and a gate for each head.
    both = module.q_proj.weight.unflatten(0, (HEADS, 2, DIM))
    q = torch.einsum("bnm,hdm->bhnd", x, both[:, 0])
    k, v = project(module, x, "k_proj", "v_proj")
    p = {
        "norm_query": 1 + module.q_norm.weight[None], "norm_key": 1 + module.k_norm.weight[None],
        "gate_weight": both[:, 1],
    }  # fmt: skip
    line = "dot | softmax | norm(rms, gain=channel) | gate(per=channel)"
    out = attnlab.attend(q, k, v, line, causal=True, parameters=p, x=x)
    merged = out.transpose(1, 2).flatten(2)
    torch.testing.assert_close(merged, expected, rtol=TOLERANCE, atol=TOLERANCE)
    leaves = [x, module.q_proj.weight, module.q_norm.weight, module.k_norm.weight]
    cotangent = draw(*expected.shape, seed=9).detach()
    ours, theirs = (torch.autograd.grad(y, leaves, cotangent, retain_graph=True) for y in (merged, expected))
    for mine, published in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, published, rtol=1e-9, atol=1e-9)


def test_talking_heads_are_the_equation_of_their_paper() -> None:
    line = "dot | softmax | talking_heads"

    def publish(q: Tensor, k: Tensor, v: Tensor, talking_heads_scores: Tensor, talking_heads_weights: Tensor) -> Tensor:
        logits = torch.einsum("bhnd,bhmd,hl->blnm", q, k, talking_heads_scores) * DIM**-0.5
        weights = torch.softmax(logits, -1)
        return torch.einsum("blnm,lh,bhmd->bhnd", weights, talking_heads_weights, v)

    assert_equal(line, publish, draw_inputs(), draw_parameters(line), causal=False)
