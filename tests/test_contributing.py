"""The stages that CONTRIBUTING.md writes are registered, compute, pass their audit, and answer a slip as it says."""

import re
import textwrap
from pathlib import Path
from typing import Any

import pytest
import torch

import attnlab
from attnlab.errors import MechanismError
from attnlab.mechanisms import REGISTRY, Mechanism

PAGE = (Path(__file__).parent.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")


@pytest.mark.usefixtures("own_stages")
def test_stages_of_ones_own_work() -> None:
    names: dict[str, Any] = {"__name__": "contributing"}
    for block in re.findall(r"^ *```python\n(.*?)^ *```", PAGE, re.M | re.S):
        exec(compile(textwrap.dedent(block), "a CONTRIBUTING block", "exec"), names)
    assert "from attnlab.mechanisms import" not in PAGE  # one place to import from
    assert names["out"].shape == (1, 2, 16, 8)
    with pytest.raises(MechanismError, match=r"did you mean 'width'\?"):
        Mechanism.parse("laplace(widht=2)")
    q, k, v = names["q"], names["k"], names["v"]
    distance = (torch.arange(16)[:, None] - torch.arange(16)).abs()
    scores = q @ k.mT / 8**0.5 - 0.5 * distance
    hidden = (distance >= 4) | torch.ones(16, 16, dtype=torch.bool).triu(1)
    expected = scores.masked_fill(hidden, -torch.inf).softmax(-1) @ v
    torch.testing.assert_close(attnlab.attend(q, k, v, "dot | alibi_window(width=4)", causal=True), expected)
    last = attnlab.attend(q[:, :, -3:], k, v, "dot | alibi_window(width=4)", causal=True)
    torch.testing.assert_close(last, expected[:, :, -3:])
    dilated = attnlab.attend(q, k, v, "dot | softmax | dilated(stride=3, width=6)", causal=True)
    hidden = (distance >= 6) | (distance % 3 > 0) | torch.ones(16, 16, dtype=torch.bool).triu(1)
    plain = (q @ k.mT / 8**0.5).masked_fill(hidden, -torch.inf).softmax(-1) @ v
    torch.testing.assert_close(dilated, plain)
    widths = torch.tensor([2, 4])[:, None, None]
    hidden = (distance >= widths) | torch.ones(16, 16, dtype=torch.bool).triu(1)
    by_head = (q @ k.mT / 8**0.5).masked_fill(hidden, -torch.inf).softmax(-1) @ v
    torch.testing.assert_close(attnlab.attend(q, k, v, "dot | softmax | head_window(base=2)", causal=True), by_head)
    others = attnlab.attend(q, k, v, "dot | softmax | centred | scaled(gain=0.9) | drop_run")
    torch.testing.assert_close(others, 0.9 * attnlab.attend(q, k, v - v.mean(-1, keepdim=True)))
    kept = REGISTRY["drop_run"](0.25).draw_kept_keys(3, 16, torch.Generator().manual_seed(0))  # type: ignore[call-arg, attr-defined]
    assert kept.shape == (3, 1, 1, 16)
    assert (~kept).sum(-1).unique().tolist() == [4]
    clipped = attnlab.attend(q, k, v, "dot | softmax | clipped(limit=0.5)")
    torch.testing.assert_close(clipped, attnlab.attend(q.clamp(-0.5, 0.5), k.clamp(-0.5, 0.5), v))
    plain_weights = attnlab.weights(q, k, "dot | softmax")
    mixed = attnlab.weights(q, k, "dot | softmax | averaged(share=1)")
    torch.testing.assert_close(mixed, plain_weights.mean(1, keepdim=True).expand_as(mixed))
    x, weight = torch.randn(1, 16, 5), torch.randn(2, 5)
    fading, built_in = (
        attnlab.attend(q, k, v, line, causal=True, x=x, parameters=parameters)
        for line, parameters in (
            ("dot | softmax | fading", {"fading_weight": weight}),
            ("dot | softmax | forget", {"forget_weight": weight, "forget_bias": torch.zeros(2)}),
        )
    )
    torch.testing.assert_close(fading, built_in)
    for line in (
        "dot | sharpened",
        "dot | softmax | fading",
        "dot | identity | fading | norm(l2) | delta",
        "dot | softmax | clipped | averaged",
        "dot | softmax | previous_value",
        "dot | softmax | short_conv_of_values",
    ):
        assert attnlab.audit(line, causal=True, checks=["leak", "prefix", "padding", "equivalences"]).passed
    assert attnlab.audit("mixer(short_conv)").passed
    sloped: Any = attnlab.Attention("dot | sloped", num_heads=2, head_dim=8, layer=1)
    assert sloped.sloped_slope.tolist() == [2**-5, 2**-9]
    declared = {
        "dot | square": "blockwise", "elu_features | softmax": "sdpa", "elu_features | identity(divide=n)": "linear",
        "shifted | softmax": "blockwise", "dot | softmax | dilated": "banded", "dot | softmax | fading": "sdpa",
        "dot | identity | fading": "linear", "dot | softmax | minus_next": "sdpa", "dot | by_log_n": "sdpa",
        "dot | unit_rows": "blockwise", "dot | square(divide=sum)": "blockwise",
        "dot | softmax | head_window": "banded", "cosine | relu | sloped_bias": "blockwise",
    }  # fmt: skip
    for line, kernel in declared.items():
        explanation = attnlab.explain(line, length=512, causal=True)
        assert (explanation.kernel, explanation.advice) == (kernel, ())
        assert attnlab.audit(line, causal=True, checks=["equivalences"]).passed
    assert attnlab.audit("dot | alibi_window", checks=["leak", "prefix", "padding", "equivalences"]).passed
