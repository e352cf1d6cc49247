"""Rows longer than a model can number are refused before they meet it."""

from typing import Any

import pytest
import torch
import transformers

from attnlab.errors import TrainingError
from attnlab.training import Tuning, build
from attnlab.training.tuning.positions import check_positions, name_field
from tests.training.runs import small


@pytest.mark.parametrize(("kind", "room"), [("bert", 20), ("roberta", 18), ("gpt2", 20)])
def test_the_longest_row_is_the_longest_that_runs(kind: str, room: int) -> None:
    sizes: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "pad_token_id": 1}
    config = transformers.AutoConfig.for_model(
        kind, vocab_size=30, max_position_embeddings=20, bos_token_id=0, eos_token_id=2, **sizes
    )
    head: Any = transformers.AutoModel
    model = head.from_config(config)
    check_positions(model, room, "a row")
    model(input_ids=torch.full((1, room), 5))
    with pytest.raises(TrainingError, match=f"a row has {room + 1} tokens, and this .* has positions for {room}"):
        check_positions(model, room + 1, "a row")
    with pytest.raises((IndexError, RuntimeError)):
        model(input_ids=torch.full((1, room + 1), 5))


def test_a_prompt_takes_positions_of_its_own() -> None:
    model = build(small("squad", tuning=Tuning(mode="prompt", length=10))).model
    check_positions(model, 54, "a row")
    with pytest.raises(TrainingError, match="positions for 54"):
        check_positions(model, 55, "a row")


def test_the_field_has_the_name_of_the_family() -> None:
    library: Any = transformers
    gpt2 = library.GPT2Config(n_layer=1, n_head=1, n_embd=4, vocab_size=8, n_positions=8)
    assert name_field(library.GPT2LMHeadModel(gpt2)) == "n_positions"
    bert = library.BertConfig(
        num_hidden_layers=1, num_attention_heads=1, hidden_size=4, intermediate_size=4, vocab_size=8
    )
    assert name_field(library.BertModel(bert)) == "max_position_embeddings"
