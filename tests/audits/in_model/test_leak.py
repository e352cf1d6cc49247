"""Leaks of a model are found: a mask that is missing or skipped, and a leak outside attention."""

from typing import Any

from torch import Tensor, nn

import attnlab

from .models import gpt2, make_whole_mask, with_attention


def test_a_custom_attention_without_a_mask_function_is_caught() -> None:
    audit = attnlab.audit(with_attention("afternoon", None), checks=["leak", "prefix"])
    leak = audit.findings["causal leak"]
    assert not leak.passed
    assert "no mask function" in leak.where
    assert not audit.findings["prefix consistency"].passed
    assert any(size > 0 for i, row in enumerate(leak.data["map"]) for size in row[i + 1 :])


def test_a_mask_that_is_skipped_where_there_is_no_padding_is_caught() -> None:
    from transformers.masking_utils import sdpa_mask

    audit = attnlab.audit(with_attention("evening", sdpa_mask), checks=["leak"])
    leak = audit.findings["causal leak"]
    assert not leak.passed
    failed = {part.name for part in leak.parts if not part.passed}
    assert any("no mask" in name for name in failed)
    assert not any("padding" in name for name in failed)


def test_a_mask_that_is_always_made_is_sound() -> None:
    audit = attnlab.audit(with_attention("morning", make_whole_mask))
    assert audit.passed, str(audit)


class Forgetful(nn.Module):
    """A layer that adds the mean over the whole sequence, as a careless normalisation would."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.inner(x)
        return out + x.mean(1, keepdim=True)


def test_a_leak_outside_attention_is_caught_too() -> None:
    model: Any = gpt2()
    model.transformer.ln_f = Forgetful(model.transformer.ln_f)
    audit = attnlab.audit(model)
    assert {finding.name for finding in audit.failed} == {
        "causal leak", "prefix consistency", "padding and batch invariance",
    }  # fmt: skip


def test_a_leak_beyond_a_short_sequence_is_caught() -> None:
    model: Any = gpt2()
    norm = model.transformer.ln_f

    class Late(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = norm(x)
            return out if x.shape[1] <= 32 else out + x.mean(1, keepdim=True)

    model.transformer.ln_f = Late()
    assert not attnlab.audit(model, checks=["leak"]).passed
