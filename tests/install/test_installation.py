"""install, uninstall and what may be asked: in place, in any wrapper, without touching what arms share."""

from __future__ import annotations

import copy
import inspect
import pickle
import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import nn
from transformers import AutoModel, AutoModelForMaskedLM, AutoModelForQuestionAnswering, PreTrainedModel, ResNetConfig

import attnlab
from attnlab.errors import AttnlabError, InstallError, MechanismError, RequestError
from attnlab.install import attention_layers, install, penalty, undecayed
from attnlab.mechanisms import CATALOG, Mechanism
from tests.install.models import REFUSED, STARTED, build, config, learned, padding, tokens, twin, with_loss


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


def test_installing_is_in_place_and_known_afterwards() -> None:
    model = build("bert")
    assert attnlab.mechanism_of(model) is None
    assert attnlab.install(model, "cosine | relu(divide=n)") is model
    assert attnlab.mechanism_of(model) == Mechanism.parse("cosine | relu(divide=n)")
    names = [name for name, _, _ in attention_layers(model)]
    assert names == [f"encoder.layer.{i}.attention.self" for i in range(2)]
    assert attnlab.mechanism_of(model.encoder.layer[0]) == attnlab.mechanism_of(model)


@pytest.mark.parametrize("name", CATALOG)
def test_taking_it_out_gives_back_the_original_exactly(name: str) -> None:
    original = with_loss("gpt2")
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
    if CATALOG[name].mechanism.share.what == "separate":
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


@pytest.mark.parametrize("name", STARTED)
def test_arms_of_one_seed_share_every_weight_they_both_have(name: str) -> None:
    states, generators, outs = {}, [], []
    for line in ("dot | softmax", "additive", "value-residual", "output-gate", "cosine | identity(divide=learned)"):
        model = with_loss(name, seed=5)
        before = torch.get_rng_state()
        attnlab.install(model, line, seed=5)
        assert torch.equal(before, torch.get_rng_state())
        generators.append(torch.rand(3))
        states[line] = {key: value for key, value in model.state_dict().items() if ".attnlab." not in key}
        outs.append(learned(model))
    baseline = states.pop("dot | softmax")
    for state in states.values():
        assert state.keys() == baseline.keys()
        assert all(torch.equal(state[key], baseline[key]) for key in baseline)
    assert all(torch.equal(draw, generators[0]) for draw in generators)


def test_learned_parameters_start_from_the_seed_the_layer_and_their_name() -> None:
    def start(seed: int, head: Any = None) -> dict[str, torch.Tensor]:
        model = build("bert") if head is None else build("bert", head)
        found = learned(attnlab.install(model, "additive", seed=seed))
        return {name.removeprefix("bert."): value for name, value in found.items()}

    first, again, other, headed = start(0), start(0), start(1), start(0, AutoModelForMaskedLM)
    assert first.keys() == headed.keys()
    assert all(torch.equal(first[name], again[name]) and torch.equal(first[name], headed[name]) for name in first)
    assert not any(torch.equal(first[name], other[name]) for name in first)
    layers = [value for name, value in first.items() if name.endswith("additive_query")]
    assert not torch.equal(layers[0], layers[1])
    assert undecayed(attnlab.install(build("bert"), "additive")) == []
    assert undecayed(attnlab.install(build("bert"), "qk-norm")) == list(
        learned(attnlab.install(build("bert"), "qk-norm"))
    )


def test_dot_takes_the_models_own_scale_and_other_scores_do_not() -> None:
    granite = build("granite")
    baseline = attnlab.install(twin(granite), "dot | softmax")(tokens()).last_hidden_state
    stated = attnlab.install(twin(granite), "dot(scale=0.3) | softmax")(tokens()).last_hidden_state
    other = attnlab.install(twin(granite), "dot(scale=0.5) | softmax")(tokens()).last_hidden_state
    torch.testing.assert_close(baseline, stated)
    assert not torch.allclose(baseline, other, atol=1e-3)
    attnlab.install(twin(granite), "cosine | softmax")(tokens())


def test_a_query_that_a_model_scales_beforehand_is_given_back() -> None:
    model = attnlab.install(build("opt"), "euclidean | softmax")
    attention = model.decoder.layers[0].self_attn
    seen: list[torch.Tensor] = []
    attention.attnlab.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    attention.q_proj.register_forward_hook(lambda _, args, out: seen.append(out))
    model(tokens())
    projected, given = seen
    torch.testing.assert_close(given.transpose(1, 2).flatten(2), projected)


@pytest.mark.parametrize("name", ["bert", "gpt2"])
@pytest.mark.parametrize("line", ["dot | softmax", "cosine | relu(divide=n)"])
def test_the_weights_can_be_looked_at(name: str, line: str) -> None:
    model = attnlab.install(build(name), line)
    mask = padding("right")
    plain = model(tokens(), attention_mask=mask)
    assert getattr(plain, "attentions", None) is None
    shown = model(tokens(), attention_mask=mask, output_attentions=True)
    assert [w.shape for w in shown.attentions] == [(3, 4, 9, 9)] * 2
    torch.testing.assert_close(shown.last_hidden_state, plain.last_hidden_state)
    assert not shown.attentions[0][1, ..., 6:].any()
    if line == "dot | softmax":
        expected = build(name)(tokens(), attention_mask=mask, output_attentions=True).attentions
        for found, wanted in zip(shown.attentions, expected, strict=True):
            torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", REFUSED)
def test_a_model_that_cannot_take_one_is_refused_by_name(name: str) -> None:
    with pytest.raises(InstallError, match=r"'[\w.]+' \(\w+\) (cannot take a mechanism|computes attention by itself)"):
        attnlab.install(build(name), "dot | softmax")


def test_a_model_with_no_attention_is_refused() -> None:
    kind: Any = AutoModel
    model = kind.from_config(ResNetConfig(hidden_sizes=[8], depths=[1], embedding_size=8))
    with pytest.raises(InstallError, match="no attention module that goes through"):
        attnlab.install(model, "dot | softmax")


@pytest.mark.parametrize("call", [attnlab.mechanism_of, attnlab.uninstall, penalty, undecayed])
def test_what_is_no_model_with_a_mechanism_is_refused(call: Any) -> None:
    with pytest.raises(AttnlabError, match="needed"):
        call("bert-base-uncased")
    if call is not attnlab.mechanism_of:
        with pytest.raises(InstallError, match="no mechanism"):
            call(build("bert"))


def test_bad_input_is_refused_with_one_error() -> None:
    name: Any = "bert"
    with pytest.raises(InstallError, match="not str"):
        attnlab.install(name, "dot | softmax")
    with pytest.raises(InstallError, match="Linear holds no Hugging Face model"):
        attnlab.install(nn.Linear(2, 2), "dot | softmax")
    with pytest.raises(InstallError, match="several Hugging Face models"):
        attnlab.install(nn.ModuleList([build("bert"), build("gpt2")]), "dot | softmax")
    half: Any = 0.5
    with pytest.raises(RequestError, match="seed must be a whole number"):
        attnlab.install(build("bert"), "dot | softmax", seed=half)
    headed = build("bert", AutoModelForMaskedLM)
    attnlab.install(headed, "dot | softmax")
    with pytest.raises(InstallError, match="model around"):
        attnlab.uninstall(headed.bert)
    with pytest.raises(InstallError, match="model around"):
        attnlab.install(headed.bert, "cosine | softmax")


def test_a_wrapped_projection_is_refused() -> None:
    model = build("bert")
    value = model.encoder.layer[0].attention.self.value
    value.forward = lambda x: x
    with pytest.raises(InstallError, match="wrapped"):
        attnlab.install(model, "value-bypass")
    attnlab.install(model, "dot | softmax")


def test_models_built_from_one_config_do_not_feel_each_other() -> None:
    shared = config("bert")
    kind: Any = AutoModel
    arms = [kind.from_config(shared) for _ in range(3)]
    baseline, variant, other = (arm.eval() for arm in arms)
    before = baseline(tokens()).last_hidden_state
    attnlab.install(variant, "cosine | softmax")
    attnlab.install(other, "dot | relu(divide=n)")
    assert torch.equal(baseline(tokens()).last_hidden_state, before)
    assert baseline.config._attn_implementation == "sdpa"
    variant(tokens())


def test_a_config_from_a_model_with_a_mechanism_does_not_leak_into_another() -> None:
    model = attnlab.install(build("bert"), "cosine | softmax")
    other = type(model)(model.config)
    with pytest.raises(InstallError, match="holds no mechanism"):
        other(tokens())


def test_a_head_goes_on_working() -> None:
    model = attnlab.install(build("bert", AutoModelForQuestionAnswering), "cosine | relu(divide=n)")
    out = model(tokens(), start_positions=torch.tensor([1, 2, 3]), end_positions=torch.tensor([2, 3, 4]))
    out.loss.backward()
    assert out.start_logits.shape == (3, 9)


@pytest.mark.parametrize("line", ["value-bypass-learned", "value-residual", "shared-qk", "output-penalty", "additive"])
@pytest.mark.parametrize("way", ["copy", "pickle"])
def test_a_copy_stands_on_its_own(line: str, way: str) -> None:
    model = with_loss("gpt2")
    attnlab.install(model, line)
    model.train()(tokens(), labels=tokens())
    model.eval()
    other: PreTrainedModel = copy.deepcopy(model) if way == "copy" else pickle.loads(pickle.dumps(model))
    expected = model(tokens()).logits
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    assert torch.equal(other(tokens()).logits, expected)
    attnlab.uninstall(other)
    other(tokens())
    assert attnlab.mechanism_of(model) is not None
    model(tokens())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_other_precisions_go_through(dtype: torch.dtype) -> None:
    for model in (build("gpt2", dtype=dtype), build("gpt2").to(dtype)):
        attnlab.install(model, "additive | softmax | bypass(alpha=0.5, learn=true) | gate")
        assert {p.dtype for p in learned(model).values()} == {dtype}
        assert model(tokens(), attention_mask=padding("left")).last_hidden_state.isfinite().all()
        exact = model.to(torch.float64)(tokens()).last_hidden_state
        torch.testing.assert_close(model.to(dtype)(tokens()).last_hidden_state.double(), exact, rtol=0.1, atol=0.1)
