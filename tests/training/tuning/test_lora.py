"""LoRA through peft: nothing changes at first, every start is of seed and name, and mechanisms stay what they are."""

import pytest
import torch
from torch import Tensor

import attnlab
from attnlab.errors import InstallError, TrainingError
from attnlab.training.spec import Tuning
from attnlab.training.tuning.apply import apply_tuning
from tests.install.models import build, tokens
from tests.training.tuning.models import HEADS, padded, shaken, trained_names, tuned, way

LINES = ["dot | softmax", "dot | softmax | bypass(alpha=0.5)", "cosine | softmax | bypass(learn=true, per=head, on=v)"]


def starts(model: torch.nn.Module) -> dict[str, Tensor]:
    """Return every A by its name below the body."""
    return {name.partition(".")[2]: p for name, p in model.named_parameters() if "lora_A" in name}


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("name", ["bert", "roberta", "distilbert", "gpt2", "llama"])
def test_at_the_start_nothing_changes(name: str, line: str) -> None:
    plain = attnlab.install(build(name, HEADS["classes"]), line)
    model = tuned(name, "classes", way("lora", name), line=line)
    assert torch.equal(model(**padded(model)).logits, plain(**padded(plain)).logits)
    assert not torch.allclose(shaken(model)(**padded(model)).logits, plain(**padded(plain)).logits, atol=1e-3)


@pytest.mark.parametrize(("name", "head"), [("bert", "classifier"), ("gpt2", "score")])
def test_below_an_adapter_a_bypass_is_what_it_was(name: str, head: str) -> None:
    line = "dot | softmax | bypass(alpha=0.5)"
    model = shaken(tuned(name, "classes", way("lora", name), line=line))
    merged = attnlab.install(build(name, HEADS["classes"]), line)
    merged.get_submodule(head).load_state_dict(model.get_submodule(head).state_dict())
    with torch.no_grad():
        for path, module in model.named_modules():
            if hasattr(module, "lora_A"):
                delta = 16 / 4 * module.lora_B["default"].weight @ module.lora_A["default"].weight
                merged.get_parameter(f"{path}.weight").add_(delta.T if name == "gpt2" else delta)
    torch.testing.assert_close(model(**padded(model)).logits, merged(**padded(model)).logits, rtol=1e-4, atol=1e-4)


def test_every_start_is_of_the_seed_and_its_name_alone() -> None:
    model = attnlab.install(build("bert", HEADS["classes"]), "dot | softmax")
    state = torch.get_rng_state()
    apply_tuning(model, way("lora"), has_new_head=True, seed=3)
    assert torch.equal(torch.get_rng_state(), state)
    first = starts(model)
    assert len(first) == 4
    again = starts(tuned("bert", "masked", way("lora"), line="cosine | softmax", seed=3))
    wider = starts(tuned("bert", "masked", Tuning(mode="lora", rank=4, targets=("query", "key", "value")), seed=3))
    assert first.keys() == again.keys() < wider.keys()
    for name, value in first.items():
        assert torch.equal(value, again[name])
        assert torch.equal(value, wider[name])
        assert 0 < value.abs().max() <= 32**-0.5
    values = list(first.values())
    assert all(not torch.equal(values[0], other) for other in values[1:])
    other_seed = starts(tuned("bert", "masked", way("lora"), seed=4))
    assert all(not torch.equal(value, other_seed[name]) for name, value in first.items())


def test_it_is_put_into_the_body_alone() -> None:
    # RoBERTa's head has a 'dense' too, and trains whole.
    model = tuned("roberta", "classes", Tuning(mode="lora", targets=("dense",)))
    assert not any("lora" in name for name, _ in model.classifier.named_parameters())
    assert {name for name in trained_names(model) if "lora" not in name} == {
        f"classifier.{layer}.{part}" for layer in ("dense", "out_proj") for part in ("weight", "bias")
    }


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (
            "qeury",
            r"'qeury' is not a linear module in the body of this BertFor\w+, did you mean 'query'\? There are dense",
        ),
        ("classifier", "'classifier' is not a linear module in the body"),
        ("LayerNorm", "'LayerNorm' is not a linear module in the body"),
        ("uery", r"'uery' is not a linear module in the body of this BertFor\w+, did you mean 'query'\?"),
    ],
)
def test_a_target_that_is_not_there_is_an_error(target: str, said: str) -> None:
    model = attnlab.install(build("bert", HEADS["classes"]), "dot | softmax")
    before = {name for name, _ in model.named_parameters()}
    with pytest.raises(TrainingError, match=said):
        apply_tuning(model, Tuning(mode="lora", targets=("value", target)), has_new_head=True)
    assert {name for name, p in model.named_parameters() if p.requires_grad} == before


def test_an_architecture_that_peft_has_no_targets_for_needs_them_named() -> None:
    said = r"peft has no default targets for 'distilbert'; name them: .* are called k_lin, lin1, lin2"
    with pytest.raises(TrainingError, match=said):
        tuned("distilbert", "classes", Tuning(mode="lora"))


@pytest.mark.parametrize(
    ("name", "line", "said"),
    [
        ("bert", "dot | softmax | share(qk)", r"'share\(qk\)' ties 'query' .* leave 'query' out of the targets"),
        ("gpt2", "dot | softmax | share(qk)", r"'share\(qk\)' ties 'c_attn' .* leave 'c_attn' out of the targets"),
        ("bert", "dot | softmax | unit_values", "'unit_values' changes the output of 'value' of .* leave 'value' out"),
        ("gpt2", "value-residual", "'value_residual' changes the output of 'c_attn' of .* leave 'c_attn' out"),
    ],
)
def test_a_mechanism_that_an_adapter_would_undo_is_refused(name: str, line: str, said: str) -> None:
    with pytest.raises(InstallError, match=said):
        tuned(name, "classes", way("lora"), line=line)


@pytest.mark.parametrize(
    ("name", "line", "target"),
    [
        ("bert", "dot | softmax | share(qk)", "value"),
        ("gpt2", "dot | softmax | share(qkv)", "c_proj"),
        ("bert", "dot | softmax | unit_values", "query"),
    ],
)
def test_the_targets_that_the_message_leaves_work(name: str, line: str, target: str) -> None:
    model = tuned(name, "classes", Tuning(mode="lora", targets=(target,)), line=line).train()
    model(**padded(model), labels=torch.tensor([0, 1, 0])).loss.backward()
    assert all(p.grad is not None for p in model.parameters() if p.requires_grad)
    assert model(tokens()).logits.isfinite().all()


def test_dropout_is_the_adapters_own() -> None:
    model = shaken(tuned("bert", "classes", Tuning(mode="lora", dropout=0.5)))
    torch.testing.assert_close(model(tokens()).logits, model(tokens()).logits)
    model.train()
    for module in model.modules():
        if type(module) is torch.nn.Dropout and module.p == 0.1:
            module.p = 0.0
    assert not torch.allclose(model(tokens()).logits, model(tokens()).logits)
