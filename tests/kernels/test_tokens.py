"""Token ids in a call: for stages that need them, checked, and of the right tokens."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

import attnlab
from attnlab import attend, stage
from attnlab.errors import MechanismError, RequestError, ShapeError
from attnlab.mechanisms import Dims, Params, Value
from attnlab.mechanisms.parameter import Parameter

LINE = "dot | softmax | value_embedding"


def draw(batch: int = 2, length: int = 5) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    q, k, v = torch.randn(3, batch, 2, length, 4, generator=generator).unbind(0)
    return q, k, v, torch.randint(7, (batch, length), generator=generator)


def test_it_is_attention_over_values_with_the_rows_of_a_table() -> None:
    q, k, v, tokens = draw()
    table, scale = torch.randn(2, 7, 4), torch.tensor([0.5, -2.0])
    learned = {"value_embedding_table": table, "value_embedding_scale": scale}
    found = attend(q, k, v, LINE, causal=True, tokens=tokens, parameters=learned)
    rows = torch.stack([table[:, tokens[0]], table[:, tokens[1]]])  # [b h n d]
    torch.testing.assert_close(found, attend(q, k, v + scale[:, None, None] * rows, causal=True))


def test_a_call_without_tokens_names_the_stage() -> None:
    q, k, v, _ = draw()
    with pytest.raises(RequestError, match=r"'value_embedding' needs the token ids.*pass tokens= \[batch, length\]"):
        attend(q, k, v, LINE)


def test_one_sequence_of_ids_serves_the_whole_batch() -> None:
    q, k, v, tokens = draw()
    one = attend(q, k, v, LINE, tokens=tokens[0])
    assert torch.equal(one, attend(q, k, v, LINE, tokens=tokens[:1].expand(2, -1)))
    torch.testing.assert_close(attend(q[0, 0], k[0, 0], v[0, 0], LINE, tokens=tokens[0]).shape, q[0, 0].shape)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda t: t.float(), "integers, not torch.float32"),
        (lambda t: t.tolist(), "integers, not list"),
        (lambda t: t[:, 1:], r"\(2, 5\), one id for each key, not \(2, 4\)"),
        (lambda t: t.expand(3, 2, 5), r"not \(3, 2, 5\)"),
    ],
)
def test_other_tokens_are_refused(change: object, problem: str) -> None:
    q, k, v, tokens = draw()
    with pytest.raises(ShapeError, match=problem):
        attend(q, k, v, LINE, tokens=change(tokens))  # type: ignore[operator]


def test_ids_that_the_table_does_not_have_are_refused() -> None:
    q, k, v, tokens = draw()
    layer = attnlab.Attention(LINE, num_heads=2, head_dim=4, vocab_size=7)
    assert layer(q, k, v, tokens=tokens).shape == q.shape
    with pytest.raises(RequestError, match=r"token ids 0 to 6, and tokens holds 11; attnlab.Attention takes vocab_siz"):
        layer(q, k, v, tokens=torch.full_like(tokens, 11))
    negative = torch.full_like(tokens, -1)
    with pytest.raises(RequestError, match="tokens holds -1"):
        layer(q, k, v, tokens=negative)
    with pytest.raises(RequestError, match="not negative, and tokens holds -1"):
        attend(q, k, v, LINE, tokens=negative)


def test_the_weights_need_no_tokens() -> None:
    q, k, _, _ = draw()
    assert torch.equal(attnlab.weights(q, k, LINE), attnlab.weights(q, k))


def test_a_stage_on_the_queries_gets_the_tokens_of_the_queries(own_stages: None) -> None:
    @stage("own_word")
    @dataclass(frozen=True)
    class OwnWord(Value):
        uses_x = uses_first = False
        target = "q"

        def parameters(self, dims: Dims) -> dict[str, Parameter]:
            return {"word": Parameter((dims.num_heads, dims.vocab_size), -1.0, 1.0)}

        def __call__(self, t: Tensor, x: Tensor, first: Tensor, p: Params, *, tokens: Tensor) -> Tensor:
            return t * p["word"][:, tokens].transpose(0, 1)[..., None]

    q, k, v, tokens = draw()
    learned = {"own_word_q_word": torch.randn(2, 7)}
    whole = attend(q, k, v, "dot | softmax | own_word", tokens=tokens, parameters=learned, causal=True)
    last = attend(q[:, :, -2:], k, v, "dot | softmax | own_word", tokens=tokens, parameters=learned, causal=True)
    torch.testing.assert_close(last, whole[:, :, -2:])


def test_only_values_stages_may_ask_for_tokens(own_stages: None) -> None:
    with pytest.raises(MechanismError, match="asks for 'tokens', which a output stage is not given"):

        @stage("telling")
        @dataclass(frozen=True)
        class Telling(attnlab.Output):
            def __call__(self, out: Tensor, q: Tensor, p: Params, *, tokens: Tensor) -> Tensor:
                return out
