"""Mechanisms nobody thought of: random lines, random sizes and masks, in every kernel that accepts them."""

from __future__ import annotations

import dataclasses

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlab.kernels import initial_values
from attnlab.mechanisms import Mechanism
from attnlab.mechanisms.position_schemes import Rope
from tests.mechanisms.strategies import mechanisms
from tests.sampling import IS_SOAK

from .problems import VOCAB_SIZE, Problem, size


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Draw a problem of a random mechanism."""
    mechanism: Mechanism = draw(mechanisms(moderate=True))
    num_queries, num_keys = draw(st.integers(1, 40)), draw(st.integers(1, 40))
    num_heads, head_dim = draw(st.integers(1, 3)), draw(st.integers(2, 19))
    if mechanism.positions.rotates:  # pairs of channels
        mechanism = dataclasses.replace(mechanism, positions=Rope())
        head_dim += head_dim % 2
    if mechanism.heads is not None:  # pairs of heads
        num_heads += num_heads % 2
    if mechanism.delta is not None:  # long keys make the delta rule grow without bound
        mechanism = dataclasses.replace(mechanism, features=())
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))

    def normal(n: int) -> torch.Tensor:
        return torch.randn(2, num_heads, n, head_dim, generator=generator, dtype=torch.float64)

    tensors = {"q": normal(num_queries), "k": normal(num_keys), "v": normal(num_keys)}
    if mechanism.delta is not None:
        tensors["k"] = tensors["k"] / tensors["k"].norm(dim=-1, keepdim=True)
    if mechanism.find_stages_needing("x"):
        x = normal(max(num_queries, num_keys)).transpose(1, 2).flatten(2)
        tensors |= {"x_queries": x[:, x.shape[1] - num_queries :], "x_keys": x[:, x.shape[1] - num_keys :]}
    learned = initial_values(mechanism, num_heads, head_dim, head_dim, vocab_size=VOCAB_SIZE)
    tensors |= {name: value.double() for name, value in learned.items()}
    shape = draw(st.sampled_from([None, (2, 1, 1, num_keys), (2, num_heads, num_queries, num_keys)]))
    mask = None if shape is None else torch.rand(shape, generator=generator) > 0.4
    return Problem(mechanism, tensors, draw(st.booleans()), mask)


@settings(max_examples=1500 if IS_SOAK else 150)
@given(problems())
def test_any_mechanism_is_the_same_in_every_kernel(problem: Problem) -> None:
    truth = problem.solve("reference", torch.float64)
    for kernel in problem.kernels:
        answer = problem.solve(kernel, torch.float64)
        for name, exact in truth.items():
            error, scale = size(answer[name] - exact), max(size(x) for x in truth.values())
            assert error <= 1e-9 * max(1.0, scale), f"{kernel}: {name} is off by {error} for '{problem.mechanism}'"
