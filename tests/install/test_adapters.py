"""Adapters on projections that a mechanism acts on: taken where both add, refused where they would undo each other."""

from __future__ import annotations

import pytest

import attnlab
from attnlab.errors import InstallError
from attnlab.install.adapters import check_adapters
from tests.install.models import build


@pytest.mark.parametrize(
    ("line", "target", "refused"),
    [
        ("dot | softmax", "value", None),
        ("dot | softmax | bypass(alpha=0.5)", "value", None),
        ("dot | softmax | share(qk)", "value", None),
        ("dot | softmax | unit_values", "query", None),
        ("dot | softmax | share(qk)", "query", r"'share\(qk\)' ties 'query' of 'encoder.layer.0.attention.self'"),
        ("dot | softmax | share(qk)", "key", "leave 'key' out of the targets"),
        (
            "dot | softmax | share(qkv)",
            "value",
            "would separate them; leave 'value' out of the targets",
        ),
        ("dot | softmax | unit_values", "value", "would add to it afterwards; leave 'value' out of the targets"),
        ("value-residual", "value", "'value_residual' changes the output of 'value' of"),
    ],
)
def test_an_adapter_is_taken_where_it_only_adds(line: str, target: str, refused: str | None) -> None:
    model = attnlab.install(build("bert"), line)
    modules = [module for name, module in model.named_modules() if name.endswith(target)]
    if refused is None:
        check_adapters(model, modules)
        return
    with pytest.raises(InstallError, match=refused):
        check_adapters(model, modules)


def test_without_a_mechanism_nothing_is_refused() -> None:
    model = build("gpt2")
    check_adapters(model, list(model.modules()))
