"""install, uninstall and what may be asked: in place, in any wrapper, without touching what arms share."""

from __future__ import annotations

import inspect
import subprocess
import sys
from typing import Any

import pytest
import torch
from transformers import AutoModelForMaskedLM, AutoModelForQuestionAnswering

import attnlab
from attnlab.errors import InstallError, MechanismError, RequestError
from attnlab.install import install
from attnlab.mechanisms import CATALOG
from tests.install.models import build, deep_enough, tokens, twin, with_loss


def test_the_room_is_its_verb_however_it_is_reached() -> None:
    code = (
        "import sys, attnlab\n"
        "assert 'transformers' not in sys.modules\n"
        "from attnlab.install import save\n"
        "import attnlab.install, attnlab.install as room\n"
        "assert attnlab.install is room and callable(attnlab.install) and attnlab.save is save\n"
        "from attnlab import install\n"
        "assert install is room\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert list(inspect.signature(attnlab.install).parameters) == list(inspect.signature(install).parameters)


def test_a_bare_mechanism_does_not_load_transformers() -> None:
    code = (
        "import sys, torch, attnlab\n"
        "q = torch.randn(1, 1, 3, 4)\n"
        "attnlab.attend(q, q, q)\n"
        "assert 'transformers' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", CATALOG)
def test_taking_it_out_gives_back_the_original_exactly(name: str) -> None:
    original = deep_enough("gpt2", name)
    model = attnlab.install(twin(original), name)
    attnlab.uninstall(model)
    assert attnlab.mechanism_of(model) is None
    assert model.config._attn_implementation == original.config._attn_implementation
    assert [n for n, _ in model.named_modules()] == [n for n, _ in original.named_modules()]
    assert model.state_dict().keys() == original.state_dict().keys()
    assert set(vars(model)) == set(vars(original))
    for own, other in zip(model.modules(), original.modules(), strict=True):
        assert set(vars(own)) == set(vars(other))
        assert not own._forward_hooks
        assert not own._forward_pre_hooks
    if not any(stage.slot in ("share", "kv_heads") for stage in CATALOG[name].mechanism.list_written_stages()):
        assert all(torch.equal(value, original.state_dict()[key]) for key, value in model.state_dict().items())
        assert torch.equal(model(tokens()).logits, original(tokens()).logits)


def test_a_mechanism_replaces_the_one_before() -> None:
    model = with_loss("gpt2")
    once = attnlab.install(with_loss("gpt2"), "additive")(tokens()).logits
    for line in ("shared-qk", "value-bypass-learned", "value-residual", "output-penalty"):
        attnlab.install(model, line)
    attnlab.install(attnlab.uninstall(model), "value-bypass-learned")
    model = with_loss("gpt2")
    attnlab.install(model, "value-bypass-learned")
    attnlab.install(model, "additive")
    assert torch.equal(model(tokens()).logits, once)
    attnlab.uninstall(model)
    assert torch.equal(model(tokens()).logits, with_loss("gpt2")(tokens()).logits)


def test_a_refused_mechanism_leaves_the_model_as_it_was() -> None:
    model = attnlab.install(build("llama grouped"), "cosine | softmax")
    before = model(tokens()).last_hidden_state
    with pytest.raises(InstallError):
        attnlab.install(model, "value-bypass")
    with pytest.raises(MechanismError):
        attnlab.install(model, "cosin | softmax")
    assert str(attnlab.mechanism_of(model)) == "cosine | softmax"
    assert torch.equal(model(tokens()).last_hidden_state, before)


def test_a_head_goes_on_working() -> None:
    model = attnlab.install(build("bert", AutoModelForQuestionAnswering), "cosine | relu(divide=n)")
    out = model(tokens(), start_positions=torch.tensor([1, 2, 3]), end_positions=torch.tensor([2, 3, 4]))
    out.loss.backward()
    assert out.start_logits.shape == (3, 9)


def test_bad_input_is_refused_with_one_error() -> None:
    half: Any = 0.5
    with pytest.raises(RequestError, match="seed must be a whole number"):
        attnlab.install(build("bert"), "dot | softmax", seed=half)
    headed = build("bert", AutoModelForMaskedLM)
    attnlab.install(headed, "dot | softmax")
    with pytest.raises(InstallError, match="model around"):
        attnlab.uninstall(headed.bert)
    with pytest.raises(InstallError, match="model around"):
        attnlab.install(headed.bert, "cosine | softmax")
