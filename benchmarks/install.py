"""What installing costs: a training step of a BERT with `dot | softmax` installed, against the model as it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attnlab.kernels.measure import measure
from benchmarks.table import Row, Table, Target, at_most, compared, memory_row, time_row

BASELINE = "dot | softmax"
TARGET = at_most(1.03)


@dataclass(frozen=True)
class Size:
    """How large the model and a batch are."""

    num_layers: int = 4
    width: int = 256
    num_heads: int = 4
    vocabulary: int = 8192
    batch: int = 8
    length: int = 128


@dataclass(frozen=True)
class Case:
    """What a batch looks like: whether sequences are padded, and the rate at which weights vanish."""

    name: str
    is_padded: bool = False
    dropout: float = 0.0
    target: Target | None = TARGET


CASES = (
    Case("full length"),
    Case("padded", is_padded=True),
    Case("dropout 0.1", dropout=0.1),
    # What is beyond the original here is the kernel's handling of padding under dropout, not the installation's.
    Case("padded, dropout 0.1", is_padded=True, dropout=0.1, target=None),
)


SIZE = Size()


def table(size: Size = SIZE, budget: float = 30, cases: Sequence[Case] = CASES) -> Table:
    """Compare forward and backward with the mechanism and without."""
    rows: list[Row] = []
    for case in cases:
        steps = {name: step(size, case, name == "installed") for name in ("installed", "original")}
        taken = measure(steps, budget)
        what = f"a step of BERT, {case.name}"
        rows.append(time_row(what, taken["installed"], "the original, SDPA", taken["original"], case.target))
        rows.append(memory_row(what, taken["installed"], "the original, SDPA", taken["original"]))
    shape = f"{size.num_layers} layers of {size.width}, batch {size.batch}, length {size.length}"
    return compared(f"'{BASELINE}' installed in a model, forward and backward: {shape}", rows)


def step(size: Size, case: Case, is_installed: bool) -> Callable[[], Tensor]:
    """Return a step of masked language modelling, with the mechanism installed or not."""
    # Imported here: transformers takes seconds, which the other tables need not wait for.
    from attnlab.install import install

    model = bert(size, case)
    if is_installed:
        install(model, BASELINE)
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(1, size.vocabulary, (size.batch, size.length), generator=generator)
    mask = torch.ones_like(tokens)
    if case.is_padded:
        mask[size.batch // 2 :, size.length * 3 // 4 :] = 0

    def run() -> Tensor:
        model.zero_grad()
        loss: Tensor = model(tokens, attention_mask=mask, labels=tokens).loss
        loss.backward()
        return loss

    return run


def bert(size: Size, case: Case) -> Any:
    """Build the model as transformers gives it."""
    from transformers import AutoModelForMaskedLM, BertConfig

    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=size.vocabulary, hidden_size=size.width, num_hidden_layers=size.num_layers,
        num_attention_heads=size.num_heads, intermediate_size=4 * size.width, max_position_embeddings=size.length,
        attention_probs_dropout_prob=case.dropout, hidden_dropout_prob=case.dropout,
    )  # fmt: skip
    model: Any = AutoModelForMaskedLM.from_config(config)  # type: ignore[no-untyped-call]
    return model.train()
