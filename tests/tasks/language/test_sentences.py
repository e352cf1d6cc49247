"""Losses of single sentences, and seeded samples."""

import pytest

from attnlab.errors import TaskError
from attnlab.tasks import load, sample, sentence_losses
from attnlab.tasks.language.line import make_lines
from attnlab.tasks.language.sentences import encode_prompt

from ..models import batches, build
from ..tokenizers import SENTENCES, byte_level, wordpiece

LINES = make_lines([SENTENCES[0], SENTENCES[1][:40], SENTENCES[2][:30]])


def test_sentences_have_their_own_loss() -> None:
    task, tokenizer = load("clm"), byte_level()
    model = build("gpt2", task, tokenizer)
    losses = sentence_losses(model, tokenizer, [line.text for line in LINES])
    single = task.score(task.predict(model, batches(task, task.features(LINES, tokenizer))), LINES)
    assert [loss.per_token for loss in losses] == pytest.approx(single.of_examples("line_loss").tolist(), rel=1e-5)
    leak_free = sentence_losses(model, tokenizer, [LINES[1].text], load("clm", has_leak_free_perplexity=True))
    assert leak_free[0].nats == pytest.approx(losses[1].nats, rel=1e-4)


def test_samples_are_seeded_and_follow_temperature_and_top_k() -> None:
    tokenizer = byte_level()
    model = build("gpt2", load("clm"), tokenizer)
    drawn = sample(model, tokenizer, "The Denver", num_tokens=8, seed=3)
    assert drawn.startswith("The Denver")
    assert drawn == sample(model, tokenizer, "The Denver", num_tokens=8, seed=3)
    assert len({sample(model, tokenizer, num_tokens=6, seed=seed) for seed in range(4)}) > 1
    greedy = sample(model, tokenizer, "The", num_tokens=6, temperature=0)
    assert greedy == sample(model, tokenizer, "The", num_tokens=6, top_k=1, seed=9)
    with pytest.raises(TaskError, match="temperature is 0 or more"):
        sample(model, tokenizer, temperature=-1)
    with pytest.raises(TaskError, match="top_k is 1 or more"):
        sample(model, tokenizer, top_k=0)
    with pytest.raises(TaskError, match="give a prompt"):
        sample(model, wordpiece())


def test_a_sample_begins_as_the_lines_of_its_task() -> None:
    assert encode_prompt(byte_level(), "The", load("clm"))[0] == byte_level().bos_token_id
    # Without a task the tokenizer decides, and an empty prompt begins with the start token.
    assert encode_prompt(byte_level(), "The") == byte_level()("The")["input_ids"]
    assert encode_prompt(byte_level(), "") == [byte_level().bos_token_id]
    without = load("clm", has_start=False)
    assert encode_prompt(byte_level(), "The", without) == byte_level()("The")["input_ids"]
    with pytest.raises(TaskError, match="this model reads no start token to begin with; give a prompt"):
        encode_prompt(byte_level(), "", without)
