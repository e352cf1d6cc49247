"""Features to time training on: of real text where ATTNLAB_DATA has it, else random tokens of like lengths."""

from __future__ import annotations

import dataclasses
import os
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np


def folder(*parts: str) -> Path | None:
    """Return a path below ATTNLAB_DATA, where it is there."""
    named = os.environ.get("ATTNLAB_DATA")
    path = Path(named, *parts) if named else None
    return path if path is not None and path.exists() else None


@cache
def bert_tokenizer() -> Any:
    """Return BERT's uncased tokenizer."""
    from attnlab.data import load_tokenizer

    path = folder("vocabs", "bert-base-uncased-vocab.txt")
    return None if path is None else load_tokenizer(path)


def where_from() -> str:
    """Say what the text is."""
    if bert_tokenizer() is None:
        return "ATTNLAB_DATA is not set: rows are random tokens, as long as those of the real sets."
    return "Rows are of Wikipedia, the One Billion Word benchmark, and SQuAD."


def mlm_features(task: Any, count: int) -> list[Any]:
    """Return full rows of 128 tokens."""
    path = folder("enwiki2015", "valid.txt.xz")
    if path is None:
        return random_rows(task, np.full(count, 128), 30522)
    from attnlab.data import open_source

    text = " ".join(islice(open_source(path).documents(), 20 * count))
    ids = np.array(bert_tokenizer()(text, add_special_tokens=False)["input_ids"])
    rows = ids[: count * 126].reshape(count, 126)
    whole = np.concatenate([np.full((count, 1), 101), rows, np.full((count, 1), 102)], 1)
    return language_rows(task, list(whole), bert_tokenizer())


def clm_features(task: Any, count: int) -> list[Any]:
    """Return lines of the One Billion Word benchmark, a token a word."""
    path = folder("lm1b_class", "1b_benchmark.train.tokens.xz")
    if path is None:
        lengths = np.random.default_rng(0).lognormal(3.2, 0.5, count).astype(int).clip(5, 100)
        return random_rows(task, lengths, 26604)
    from attnlab.data import open_source, train_tokenizer

    source = open_source(path)
    tokenizer = train_tokenizer(source, "word", min_count=3)
    lines = task.examples(source)[:count]
    return list(task.features(lines, tokenizer))[:count]


def squad_features(task: Any, count: int) -> list[Any]:
    """Return windows of SQuAD questions."""
    path = folder("squad", "train-v1.1.json.xz")
    if path is None:
        return random_questions(task, count)
    questions = task.examples(path)[:: max(1, 87599 // count)][:count]
    return list(task.features(questions, bert_tokenizer()))[:count]


def language_rows(task: Any, rows: list[Any], tokenizer: Any) -> list[Any]:
    """Make features of masked language modelling of ids, with a line's own marks."""
    lines = task.examples("embedded:pydoc", "dev")[:1]
    (model, *_) = task.features(lines, tokenizer)
    return [
        dataclasses.replace(
            model,
            key=str(number),
            number=number,
            inputs={"input_ids": row.astype(np.int32), "token_type_ids": np.zeros(len(row), np.int32)},
        )
        for number, row in enumerate(rows)
    ]


def random_rows(task: Any, lengths: Any, vocab: int) -> list[Any]:
    """Return tokens that are drawn as words are, a few of them often."""
    from attnlab.data import Vocabulary, train_tokenizer
    from attnlab.tasks.batch import BatchPadding, Feature

    random = np.random.default_rng(0)
    ranks = np.arange(vocab - 5)
    chances = 1 / (ranks + 10)
    rows = [5 + random.choice(ranks, n, p=chances / chances.sum()).astype(np.int32) for n in lengths]
    if task.name == "clm":
        return [Feature(str(i), i, {"input_ids": row}, {"labels": row}, BatchPadding(0)) for i, row in enumerate(rows)]
    from attnlab.data import open_source
    from attnlab.tasks.language.mlm import Maskable

    tokenizer = train_tokenizer(open_source("embedded:pydoc", split="train"), "wordpiece", 400)
    own = Vocabulary.of(tokenizer)
    special = np.zeros(vocab, bool)
    special[:5] = True
    wide = dataclasses.replace(own, size=vocab, special=special, continues=None)
    return [Maskable(str(i), i, {"input_ids": row}, {}, BatchPadding(0), wide) for i, row in enumerate(rows)]


def random_questions(task: Any, count: int) -> list[Any]:
    """Return windows of random tokens with a span in each, as long as SQuAD's are."""
    from attnlab.tasks.batch import BatchPadding, Feature

    random = np.random.default_rng(0)
    lengths = random.lognormal(5.08, 0.37, count).astype(int).clip(60, 384)
    features = []
    for number, length in enumerate(lengths):
        ids = random.integers(1000, 30522, length).astype(np.int32)
        at = int(random.integers(20, length - 5))
        targets = {"start_positions": at, "end_positions": at + 2}
        features.append(Feature(str(number), number, {"input_ids": ids}, targets, BatchPadding(0)))
    return features
