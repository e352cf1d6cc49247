"""Kernels that are broken on purpose, and single checks that tests ask for."""

import dataclasses
from collections.abc import Callable

import pytest
from torch import Tensor

import attnlab
from attnlab.audits import Finding, Findings
from attnlab.kernels import blockwise, reference
from attnlab.kernels.call import Call
from attnlab.kernels.visibility import Visibility


def one_too_many(seen: Visibility) -> Visibility:
    """See one token of the future."""
    return dataclasses.replace(seen, first=seen.offset + 1)


def one_padded_key(seen: Visibility) -> Visibility:
    """Count the first key of the padding."""
    if seen.mask is None or seen.mask.shape[2] != 1:
        return seen
    hidden = ~seen.mask
    first = hidden & (hidden.cumsum(-1) == 1)
    return dataclasses.replace(seen, mask=seen.mask | first)


def from_the_start(seen: Visibility) -> Visibility:
    """Forget where queries stand against a longer cache."""
    return dataclasses.replace(seen, first=0)


def plant(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[Visibility], Visibility], *checks: str, causal: bool = True
) -> Findings:
    """Break the blockwise kernel, which then sees other keys than it may, and run some checks of a mechanism."""

    def attend(call: Call) -> Tensor:
        return reference.attend(dataclasses.replace(call, visibility=change(call.visibility)))

    monkeypatch.setattr(blockwise, "attend", attend)
    return attnlab.audit("dot | relu(divide=n)", causal=causal, checks=checks).findings


def run_check(line: str, check: str, causal: bool | None = None) -> Finding:
    """Run one check of a mechanism."""
    return attnlab.audit(line, causal=causal, checks=[check]).findings[check]
