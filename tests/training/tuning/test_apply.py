"""Tuning through the tasks: the loss goes down, what trains moves, and what is frozen stays, bit for bit."""

from typing import Any, get_args

import pytest
import torch
from torch import nn

import attnlab
from attnlab.errors import TrainingError
from attnlab.tasks import LabelledText, TextLine, load
from attnlab.training.spec import Mode, Tuning
from attnlab.training.tuning.apply import apply_tuning
from attnlab.training.tuning.parts import count_parameters
from tests.install.models import build
from tests.install.test_ecosystem import TRACING
from tests.tasks import models as task_models
from tests.tasks.squad.questions import question
from tests.tasks.tokenizers import SENTENCES, byte_level, wordpiece
from tests.training.tuning.models import HEADS, padded, shaken, trained_names, tuned, way

TASKS: list[tuple[str, str, Any]] = [
    ("squad", "bert", [question("Denver Broncos"), question("Santa Clara", key="q2"), question("Köln", key="q3")]),
    ("squad", "gpt2", [question("Denver Broncos"), question("Santa Clara", key="q2")]),
    ("boolq", "bert", [LabelledText(str(n), SENTENCES[n], SENTENCES[3 - n], n % 2, f"row {n}") for n in range(4)]),
    ("boolq", "gpt2", [LabelledText(str(n), SENTENCES[n], SENTENCES[3 - n], n % 2, f"row {n}") for n in range(4)]),
    ("mlm", "bert", [TextLine(str(n), text, f"line {n}") for n, text in enumerate(SENTENCES)]),
    ("clm", "gpt2", [TextLine(str(n), text, f"line {n}") for n, text in enumerate(SENTENCES)]),
]
LINE = "dot | softmax | bypass(alpha=0.5, learn=true) | penalize(output, 0.01)"


def prepared(name: str, kind: str, examples: Any, mode: str) -> tuple[Any, Any, Any]:
    """Return a task, a batch of it with padding, and a tuned model without dropout."""
    task = load(name, max_len=48, **({"stride": 16} if name == "squad" else {}))
    tokenizer = wordpiece() if kind == "bert" else byte_level()
    model = task_models.build(kind, task, tokenizer)
    attnlab.install(model, LINE)
    apply_tuning(model, way(mode), has_new_head=name in ("squad", "boolq"))
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return task, task.collate(task.features(examples, tokenizer)), model.train()


@pytest.mark.parametrize("mode", get_args(Mode))
@pytest.mark.parametrize(("name", "kind", "examples"), TASKS, ids=[f"{name} {kind}" for name, kind, _ in TASKS])
def test_a_few_steps_lower_the_loss_and_move_what_trains_alone(name: str, kind: str, examples: Any, mode: str) -> None:
    if (name, mode) == ("clm", "head"):
        with pytest.raises(TrainingError, match="has no head of its own"):
            prepared(name, kind, examples, mode)
        return
    task, batch, model = prepared(name, kind, examples, mode)
    before = {each: p.detach().clone() for each, p in model.named_parameters()}
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.02)
    losses = []
    for _ in range(8):
        optimizer.zero_grad()
        loss = task.loss(model, batch)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    for each, parameter in model.named_parameters():
        if parameter.requires_grad:
            assert not torch.equal(parameter, before[each]), each
        else:
            assert torch.equal(parameter, before[each]), each
            assert parameter.grad is None, each


@pytest.mark.parametrize("mode", get_args(Mode))
def test_what_trains_is_by_name(mode: str) -> None:
    model = tuned("bert", "classes", way(mode), line="additive | softmax")
    head = {"classifier.weight", "classifier.bias"}
    layers = [f"bert.encoder.layer.{index}.attention.self" for index in (0, 1)]
    added = {
        "full": {name for name, _ in model.named_parameters()},
        "head": set(),
        "prompt": {"attnlab_prompt.vectors"},
        "prefix": {f"{layer}.attnlab.prefix_{part}" for layer in layers for part in ("keys", "values")},
        "lora": {
            f"{layer}.{part}.lora_{side}.default.weight"
            for layer in layers
            for part in ("query", "value")
            for side in "AB"
        },
    }
    assert trained_names(model) == head | added[mode]


def test_full_tuning_frees_what_was_frozen() -> None:
    model = tuned("bert", "classes", Tuning(mode="head"))
    apply_tuning(model, Tuning(), has_new_head=True)
    assert all(parameter.requires_grad for parameter in model.parameters())
    apply_tuning(model, Tuning(mode="prompt", length=3), has_new_head=True)
    assert count_parameters(model).num_trained == 3 * 32 + 66


@pytest.mark.parametrize("mode", ["prompt", "prefix", "lora"])
def test_a_model_is_not_tuned_twice(mode: str) -> None:
    model = tuned("bert", "classes", way(mode))
    for again in get_args(Mode):
        with pytest.raises(TrainingError, match=rf"has a {mode} already; tune a model as it was built or loaded"):
            apply_tuning(model, way(again), has_new_head=True)


def test_a_head_that_is_not_there_is_an_error() -> None:
    tied = "GPT2LMHeadModel has no head of its own: its head is tied to the body"
    with pytest.raises(TrainingError, match=tied):
        tuned("gpt2", "causal", Tuning(mode="head"))
    for mode in ("head", "prompt"):
        body = attnlab.install(build("bert"), "dot | softmax")
        with pytest.raises(TrainingError, match=f"'{mode}' trains the head .* it is a body without a head"):
            apply_tuning(body, way(mode), has_new_head=True)
        assert all(parameter.requires_grad for parameter in body.parameters())


def test_what_is_no_model_or_no_seed_is_refused() -> None:
    body = build("bert", HEADS["classes"])
    with pytest.raises(TrainingError, match=r"needs a Hugging Face model .*, not Linear; tune it first, then wrap"):
        apply_tuning(nn.Linear(2, 2), Tuning(), has_new_head=True)  # type: ignore[arg-type]
    with pytest.raises(TrainingError, match=r"seed must be a whole number, not 0\.5"):
        apply_tuning(body, Tuning(mode="prompt"), has_new_head=True, seed=0.5)  # type: ignore[arg-type]
    with pytest.raises(TrainingError, match=r"BertForSequenceClassification has none; call attnlab\.install"):
        apply_tuning(body, Tuning(mode="prefix"), has_new_head=True)
    body.compile(backend="eager")
    with pytest.raises(TrainingError, match="not one that is compiled already; tune it first"):
        apply_tuning(body, Tuning(mode="head"), has_new_head=True)


@pytest.mark.filterwarnings(*TRACING)
def test_compiled_models_do_not_mix_up_what_was_added() -> None:
    torch.compiler.reset()
    for mode in ("prompt", "full", "prefix"):
        model = shaken(tuned("gpt2", "classes", way(mode)))
        fast: Any = torch.compile(model, backend="aot_eager")
        torch.testing.assert_close(fast(**padded(model)).logits, model(**padded(model)).logits)
        fast(**padded(model)).logits.sum().backward()
        assert all(p.grad is not None for p in model.parameters() if p.requires_grad)


def test_without_a_mechanism_all_but_a_prefix_works() -> None:
    for mode in ("full", "head", "prompt", "lora"):
        model = build("bert", HEADS["classes"])
        apply_tuning(model, way(mode), has_new_head=True)
        model(torch.tensor([[3, 4, 5]])).logits.sum().backward()
        assert all(p.grad is not None for p in model.parameters() if p.requires_grad)


@pytest.mark.usefixtures("mixers")
def test_what_a_mixer_replaces_stays_frozen() -> None:
    model = attnlab.install(build("gpt2"), "mixer(average)")
    apply_tuning(model, Tuning(mode="full"), has_new_head=False, seed=0)
    frozen = {name for name, parameter in model.named_parameters() if not parameter.requires_grad}
    parts = ("c_attn.weight", "c_attn.bias", "c_proj.weight", "c_proj.bias")
    assert frozen == {f"h.{layer}.attn.{part}" for layer in range(2) for part in parts}
    for mode in ("prefix", "lora"):
        with pytest.raises(TrainingError, match=rf"no keys and no projections that tuning mode '{mode}'"):
            apply_tuning(model, Tuning(mode=mode), has_new_head=False, seed=0)
