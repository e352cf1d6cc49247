"""A prompt among the input embeddings: what it gives against embeddings put in by hand; padding, positions, cache."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoModel

import attnlab
from attnlab.errors import InstallError, TrainingError
from attnlab.training.spec import Tuning
from attnlab.training.tuning.apply import apply_tuning
from tests.install.models import LENGTH, build, padding, pair, tokens, twin
from tests.training.tuning.models import HEADS, padded, second_row, shaken, tuned, way

PROMPT = Tuning(mode="prompt", length=5)
ENCODERS = ["bert", "roberta", "distilbert", "electra", "albert", "modernbert", "camembert"]
DECODERS = ["gpt2", "opt", "llama", "llama grouped", "qwen3", "gemma3 windows", "gpt-neox", "bert decoder"]

ROUNDED = ["opt", "llama", "llama grouped", "qwen3", "gemma3 windows"]


def by_hand(original: Any, vectors: Tensor, ids: Tensor, mask: Tensor | None, start: int) -> Tensor:
    """RunSpec an untouched model on embeddings with the vectors among them; cut their places out of its last states."""
    words = original.get_input_embeddings()(ids)
    whole = torch.cat([words[:, :start], vectors.expand(len(ids), -1, -1), words[:, start:]], 1)
    ones = torch.ones(len(ids), len(vectors), dtype=torch.long)
    seen = None if mask is None else torch.cat([mask[:, :start], ones, mask[:, start:]], 1)
    states = original(inputs_embeds=whole, attention_mask=seen).last_hidden_state
    return torch.cat([states[:, :start], states[:, start + len(vectors) :]], 1)


@pytest.mark.parametrize("side", ["none", "right"])
@pytest.mark.parametrize("name", ENCODERS + DECODERS)
def test_it_is_as_embeddings_put_in_by_hand(name: str, side: str) -> None:
    original = build(name, AutoModel).double()
    model = attnlab.install(twin(original), "dot | softmax")
    apply_tuning(model, PROMPT, has_new_head=False)
    shaken(model)
    mask = padding(side)
    rows = torch.ones(3, LENGTH, dtype=torch.bool) if mask is None else mask.bool()
    found = model(tokens(), attention_mask=mask).last_hidden_state
    assert found.shape == (3, LENGTH, 32)
    vectors = model.attnlab_prompt.vectors.detach().clone().requires_grad_()
    expected = by_hand(original, vectors, tokens(), mask, 0 if name in DECODERS else 1)
    # Everything is fp64, but eager attention takes the softmax of some models in fp32, RMSNorm its mean.
    near: Any = {"rtol": 1e-4, "atol": 5e-6} if name in ROUNDED else {}
    torch.testing.assert_close(found[rows], expected[rows], **near)
    found[rows].square().sum().backward()
    expected[rows].square().sum().backward()
    if (name, side) == ("modernbert", "right"):
        # Eager attention gives NaN there, for padding whose window holds nothing but padding; ours does not.
        assert model.attnlab_prompt.vectors.grad.isfinite().all()
        return
    torch.testing.assert_close(model.attnlab_prompt.vectors.grad, vectors.grad, **near)


@pytest.mark.parametrize("line", ["dot | softmax", "cosine | relu(divide=n)"])
@pytest.mark.parametrize("head", ["classes", "span"])
@pytest.mark.parametrize("name", ["bert", "roberta", "distilbert", "electra", "gpt2", "llama grouped", "opt"])
def test_padding_changes_nothing(name: str, head: str, line: str) -> None:
    model = shaken(tuned(name, head, PROMPT, line=line))
    together, alone = model(**padded(model)), model(**second_row())
    if head == "classes":
        torch.testing.assert_close(together.logits[1:2], alone.logits)
        return
    for part in ("start_logits", "end_logits"):
        assert getattr(together, part).shape == (3, LENGTH)
        torch.testing.assert_close(getattr(together, part)[1:2, :6], getattr(alone, part))


def test_heads_read_what_they_read_before() -> None:
    model = shaken(tuned("bert", "classes", PROMPT))
    states: list[Tensor] = []
    model.bert.register_forward_hook(lambda module, args, output: states.append(output.pooler_output))
    logits = model(tokens()).logits
    torch.testing.assert_close(model.classifier(states[0]), logits)
    whole = model.bert(tokens())
    torch.testing.assert_close(model.bert.pooler(whole.last_hidden_state), states[0])


def test_token_types_and_positions_go_along() -> None:
    model = shaken(tuned("bert", "classes", PROMPT))
    types = torch.zeros(3, LENGTH, dtype=torch.long)
    plain = model(tokens()).logits
    torch.testing.assert_close(model(tokens(), token_type_ids=types).logits, plain)
    torch.testing.assert_close(model(tokens(), position_ids=torch.arange(LENGTH)[None]).logits, plain)
    types[:, 4:] = 1
    assert not torch.allclose(model(tokens(), token_type_ids=types).logits, plain, atol=1e-4)
    gpt2 = shaken(tuned("gpt2", "causal", PROMPT))
    plain = gpt2(tokens()).logits
    torch.testing.assert_close(gpt2(tokens(), position_ids=torch.arange(LENGTH).expand(3, -1)).logits, plain)
    # It looks token types up among its words; the prompt goes in once all the same.
    with torch.no_grad():
        gpt2.transformer.wte.weight[0] = 0
    found = gpt2(tokens(), token_type_ids=torch.zeros_like(tokens())).logits
    torch.testing.assert_close(found[..., 1:], plain[..., 1:])


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_outputs_are_as_long_as_inputs_and_weights_show_the_prompt(name: str) -> None:
    model = tuned(name, "masked" if name == "bert" else "causal", PROMPT)
    output = model(tokens(), output_hidden_states=True, output_attentions=True, labels=tokens())
    assert output.logits.shape == (3, LENGTH, 64)
    assert [state.shape[1] for state in output.hidden_states] == [LENGTH] * 3
    assert [weights.shape[2:] for weights in output.attentions] == [(LENGTH + 5, LENGTH + 5)] * 2
    torch.testing.assert_close(model(tokens(), return_dict=False)[0], output.logits)
    torch.testing.assert_close(model.base_model(tokens(), return_dict=False)[0], output.hidden_states[-1])


@pytest.mark.parametrize("side", ["none", "left"])
@pytest.mark.parametrize("name", ["gpt2", "llama grouped", "opt", "gemma3 windows"])
def test_generation_is_the_same_with_a_cache_and_without(name: str, side: str) -> None:
    model = shaken(tuned(name, "causal", PROMPT))
    mask = torch.ones(3, LENGTH, dtype=torch.long) if padding(side) is None else padding(side)
    settings: Any = {"max_new_tokens": 6, "do_sample": False, "pad_token_id": 0, "eos_token_id": None}
    ways = [model.generate(tokens(), attention_mask=mask, use_cache=use, **settings) for use in (True, False)]
    assert torch.equal(*ways)
    ids = tokens()[:1]
    for _ in range(6):
        ids = torch.cat([ids, model(ids).logits[:, -1:].argmax(-1)], 1)
    assert torch.equal(ways[0][:1], ids)


def test_a_causal_model_still_sees_no_future() -> None:
    model = shaken(tuned("gpt2", "causal", PROMPT))
    changed = tokens().clone()
    changed[:, 5] = (changed[:, 5] + 1) % 64
    before, after = model(tokens()).logits, model(changed).logits
    torch.testing.assert_close(before[:, :5], after[:, :5])
    assert not torch.allclose(before[:, 5:], after[:, 5:], atol=1e-3)


def drawn(model: Any) -> list[int]:
    """Find the tokens a prompt starts as."""
    rows = model.get_input_embeddings().weight
    found: list[int] = (model.attnlab_prompt.vectors[:, None] == rows[None]).all(-1).nonzero()[:, 1].tolist()
    assert len(found) == len(model.attnlab_prompt.vectors)
    return found


def test_it_starts_as_embeddings_of_tokens_drawn_by_the_seed() -> None:
    model = attnlab.install(build("bert", HEADS["classes"]), "dot | softmax")
    state = torch.get_rng_state()
    apply_tuning(model, PROMPT, has_new_head=True, seed=3)
    assert torch.equal(torch.get_rng_state(), state)
    first = drawn(model)
    assert len(set(first)) > 1
    assert drawn(tuned("bert", "masked", PROMPT, line="cosine | softmax", seed=3)) == first
    assert drawn(tuned("bert", "classes", PROMPT, seed=4)) != first
    for name, pad in (("bert", 0), ("roberta", 1)):
        assert pad not in drawn(tuned(name, "classes", Tuning(mode="prompt", length=60)))


def test_a_copy_has_a_prompt_of_its_own() -> None:
    model = tuned("gpt2", "causal", PROMPT)
    before = model(tokens()).logits
    other = shaken(copy.deepcopy(model))
    assert not torch.allclose(other(tokens()).logits, before, atol=1e-3)
    torch.testing.assert_close(model(tokens()).logits, before)


def test_a_pass_that_failed_leaves_no_trace() -> None:
    model = tuned("bert", "classes", PROMPT)
    before = model(tokens()).logits
    with pytest.raises(IndexError):
        model(torch.full((1, 4), 9999))
    words = model.get_input_embeddings()
    torch.testing.assert_close(words(tokens()), words.weight[tokens()])
    torch.testing.assert_close(model(tokens()).logits, before)


def test_mixed_precision_works() -> None:
    model = tuned("bert", "classes", PROMPT).train()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model(tokens(), labels=torch.tensor([0, 1, 0])).loss
    loss.backward()
    assert model.attnlab_prompt.vectors.grad.isfinite().all()
    assert model.attnlab_prompt.vectors.grad.any()


@pytest.mark.parametrize(("name", "positions"), [("bert", 66), ("gpt2", 66), ("roberta", 64)])
def test_an_input_that_leaves_no_room_is_refused(name: str, positions: int) -> None:
    model = tuned(name, "classes", PROMPT)
    most = positions - 5
    model(tokens(2, most))
    said = (
        rf"an input of {most + 1} tokens and a prompt of 5 need {positions + 1} positions, and \w+ has {positions}; "
        rf"cut inputs to {most} tokens \(max_len of the task\), or take a shorter prompt"
    )
    with pytest.raises(TrainingError, match=said):
        model(tokens(2, most + 1))
    with pytest.raises(TrainingError, match=f"a prompt of {positions} leaves no room for an input"):
        tuned(name, "classes", Tuning(mode="prompt", length=positions))


def test_inputs_without_a_place_for_it_are_refused() -> None:
    model = tuned("gpt2", "causal", PROMPT)
    words = model.get_input_embeddings()(tokens())
    with pytest.raises(TrainingError, match=r"GPT2Model has a prompt, .*; pass these, not inputs_embeds"):
        model(inputs_embeds=words)
    with pytest.raises(TrainingError, match=r"needs attention_mask as \[batch, length\], not \[3, 1, 9, 9\]"):
        model(tokens(), attention_mask=torch.ones(3, 1, 9, 9, dtype=torch.bool))
    with pytest.raises(TrainingError, match=r"several sequences in one row \(packed\)"):
        model(tokens(), position_ids=torch.tensor([0, 1, 2, 3, 0, 1, 2, 3, 4]).expand(3, -1))


def test_models_without_a_place_for_it_are_refused() -> None:
    for model in (pair(), build("bart")):
        with pytest.raises(TrainingError, match="has no single sequence of tokens for a prompt"):
            apply_tuning(model, PROMPT, has_new_head=False)
        assert all(parameter.requires_grad for parameter in model.parameters())


def test_saving_is_refused(tmp_path: Any) -> None:
    for mode, what in (("prompt", "a prompt"), ("lora", "LoRA adapters")):
        model = tuned("bert", "classes", way(mode))
        for save in (lambda one: attnlab.save(one, tmp_path), lambda one: one.save_pretrained(tmp_path)):
            with pytest.raises(InstallError, match=f"holds {what}, which attnlab.load would not build; save the"):
                save(model)
    assert not list(tmp_path.iterdir())
