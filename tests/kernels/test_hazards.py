"""What breaks kernels: rows that see nothing, memory that was never written, equal vectors, scores without bound,
a caller that is compiled, autocast, other devices' absence of a compiler."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch

from attnlab import Attention, attend
from attnlab.errors import AttnlabWarning
from attnlab.kernels import KERNELS
from attnlab.mechanisms import UNIFORM

from .problems import VOCAB_SIZE, Problem, assert_as_exact, problem, tokens_for, x_for

NAMES = list(UNIFORM)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_a_row_that_sees_nothing_gives_zeros_and_zero_gradients(name: str, causal: bool) -> None:
    given = problem(name, "plain", 9)
    mask = torch.ones(2, 1, 9, 9, dtype=torch.bool)
    mask[0, 0, 4] = False
    by_key = torch.ones(2, 1, 1, 9, dtype=torch.bool)
    by_key[1] = False
    for one in (mask, by_key):
        case = Problem(given.mechanism, given.tensors, causal, one)
        for kernel in case.kernels:
            for dtype in (torch.float32, torch.float64):
                found = case.solve(kernel, dtype)
                assert not any(x.isnan().any() for x in found.values()), kernel
                hidden = found["out"][0, :, 4] if one is mask else found["out"][1]
                assert (hidden == 0).all(), kernel
                unseeing = found["dq"][0, :, 4] if one is mask else found["dq"][1]
                assert (unseeing == 0).all(), kernel
                if one is by_key:
                    assert all((found[f"d{x}"][1] == 0).all() for x in "qkv"), kernel


@pytest.mark.parametrize("situation", ["causal", "both", "cross", "cached"])
@pytest.mark.parametrize("name", NAMES)
def test_nothing_depends_on_memory_that_was_never_written(name: str, situation: str) -> None:
    given = problem(name, situation, 63)
    torch.use_deterministic_algorithms(True)
    try:
        assert torch.empty(8).isnan().all()
        for kernel in given.kernels:
            assert_as_exact(given, kernel, torch.float64)
            assert_as_exact(given, kernel, torch.float32)
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("name", NAMES)
def test_equal_and_zero_vectors_have_finite_gradients(name: str) -> None:
    given = problem(name, "plain", 6)
    same = given.tensors["q"].clone()
    same[:, :, 0] = 0
    for kernel in Problem(given.mechanism, {**given.tensors, "q": same, "k": same.clone()}, True, None).kernels:
        for dtype in (torch.float32, torch.float64):
            case = Problem(given.mechanism, {**given.tensors, "q": same, "k": same.clone()}, True, None)
            assert all(x.isfinite().all() for x in case.solve(kernel, dtype).values()), (kernel, dtype)


@pytest.mark.parametrize(
    "name", ["baseline", "additive", "l1-attention", "l2-attention", "sparsemax", "softmax-off-by-one"]
)
def test_huge_scores_stay_finite(name: str) -> None:
    given = problem(name, "causal", 17)
    tensors = {key: tensor * 1e4 if key in "qk" else tensor for key, tensor in given.tensors.items()}
    case = Problem(given.mechanism, tensors, True, None)
    for kernel in case.kernels:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AttnlabWarning)
            assert all(x.isfinite().all() for x in case.solve(kernel, torch.float32).values()), kernel


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # torch's own, when it traces
# token-dropout draws from a generator; relative-bias chooses its buckets by the direction, which makes a stage.
@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("token-dropout", "relative-bias")])
def test_a_compiled_caller_computes_the_same(name: str) -> None:
    torch.compiler.reset()
    module = Attention(name, num_heads=2, head_dim=8, vocab_size=VOCAB_SIZE)
    tensors = [torch.randn(2, 2, 21, 8, generator=torch.Generator().manual_seed(i)) for i in range(3)]

    def layer(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = module(
            q, k, v, causal=True, x=x_for(module.mechanism, q, k), tokens=tokens_for(module.mechanism, k)
        )
        return out.relu().sum()

    results = []
    for function in (layer, torch.compile(layer, backend="aot_eager", fullgraph=True)):
        inputs = [t.clone().requires_grad_() for t in tensors]
        out = function(*inputs)
        results.append([out, *torch.autograd.grad(out, [*inputs, *module.parameters()])])
    for eager, compiled in zip(*results, strict=True):
        torch.testing.assert_close(compiled, eager)


@pytest.mark.parametrize("name", ["baseline", "additive", "sigmoid-attention", "cosine-linear", "l1-attention"])
def test_autocast_gives_its_dtype_and_the_bf16_answer(name: str) -> None:
    q, k, v = torch.randn(3, 2, 2, 19, 8, generator=torch.Generator().manual_seed(0)).unbind(0)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = attend(q, k, v, name, causal=True)
    assert out.dtype == torch.bfloat16
    expected = attend(q.bfloat16(), k.bfloat16(), v.bfloat16(), name, causal=True)
    torch.testing.assert_close(out, expected)


@pytest.mark.parametrize("kernel", KERNELS)
def test_inputs_are_left_as_they_were(kernel: str) -> None:
    for name in NAMES:
        given = problem(name, "causal", 11)
        if kernel in given.kernels:
            before = {key: tensor.clone() for key, tensor in given.tensors.items()}
            given.solve(kernel, torch.float64)
            assert all(torch.equal(before[key], tensor) for key, tensor in given.tensors.items())


@pytest.mark.parametrize("kernel", KERNELS)
def test_inputs_need_not_be_contiguous(kernel: str) -> None:
    generator = torch.Generator().manual_seed(0)
    for name in NAMES:
        if kernel not in problem(name, "causal", 11).kernels:
            continue
        # As a model's projections come: [b n h d], seen as [b h n d].
        q, k, v = (torch.randn(2, 11, 2, 8, generator=generator).transpose(1, 2) for _ in range(3))
        options: Any = {"causal": True, "kernel": kernel, "x": x_for(name, q, k), "tokens": tokens_for(name, k)}
        strided = attend(q, k, v, name, **options)
        torch.testing.assert_close(strided, attend(q.contiguous(), k.contiguous(), v.contiguous(), name, **options))


@pytest.mark.parametrize("name", NAMES)
def test_any_strides_and_any_value_width_with_a_mask(name: str) -> None:
    generator = torch.Generator().manual_seed(0)
    q, k = (torch.randn(2, 2, 9, 8, generator=generator) for _ in range(2))
    mask = torch.arange(9) < torch.tensor([9, 6])[:, None, None, None]
    for value_dim in (8, 3, 21):
        v = torch.randn(2, 2, 9, value_dim, generator=generator)
        options: Any = {"causal": True, "mask": mask, "x": x_for(name, q, k), "tokens": tokens_for(name, k)}
        expected = attend(q.double(), k.double(), v.double(), name, kernel="reference", **options)
        turned = [x.mT.contiguous().mT for x in (q, k, v)]
        for kernel in Problem(UNIFORM[name], {"q": q, "k": k, "v": v}, True, mask).kernels:
            found = attend(turned[0], turned[1], turned[2], name, kernel=kernel, **options)
            torch.testing.assert_close(found.double(), expected, atol=1e-4, rtol=1e-4, msg=kernel)


@pytest.mark.filterwarnings("ignore::attnlab.errors.AttnlabWarning")
@pytest.mark.parametrize("name", NAMES)
def test_a_nan_that_is_seen_is_never_hidden(name: str) -> None:
    q, k, v = torch.randn(3, 1, 2, 20, 8, generator=torch.Generator().manual_seed(0))
    k[0, 0, 3, 0] = torch.nan
    if UNIFORM[name].weights.name == "argmax":
        return  # what the largest of NaN is, torch leaves open
    for kernel in Problem(UNIFORM[name], {"q": q, "k": k, "v": v}, False, None).kernels:
        assert (
            attend(q, k, v, name, kernel=kernel, x=x_for(name, q, k), tokens=tokens_for(name, k))[0, 0].isnan().all()
        ), kernel


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@pytest.mark.parametrize("line", ["dot | softmax", "cosine | relu(divide=n)", "value-bypass"])
def test_a_compiled_caller_may_pass_a_line(line: str) -> None:
    torch.compiler.reset()
    q = torch.randn(1, 2, 9, 4)
    compiled = torch.compile(lambda x: attend(x, x, x, line, causal=True), backend="aot_eager")
    torch.testing.assert_close(compiled(q), attend(q, q, q, line, causal=True))
