"""One run against Hugging Face's Trainer: the same model, weights, batches and optimizer, step for step.

Both are whole: loading, clipping, the update and the rate are in it. Times are processor times on one thread, so that
other programs matter less. Both compute in fp32; if bf16 pays here, rows in bf16 stand beside those. "HF Trainer" pads
to the greatest length, as the example scripts do; "padded like ours" gets the batches of attnlab, rows of similar
lengths padded to the longest of the batch.

The share of the peak counts useful operations: 2 per weight and position in the forward pass and 4 in the backward
pass, for every linear layer at each token that is not padding, for the vocabulary head at each label, and likewise for
each visible pair in the two products of attention. What is computed besides (elementwise operations, products that
are computed again, padding) counts nothing. The peak is that of a product of square matrices, in the same run.

With ATTNLAB_DATA naming a folder that has enwiki2015/, lm1b_class/, squad/ and vocabs/, the text is real; without it,
it is random tokens of like lengths.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import process_time
from typing import Any

import torch
from torch import nn

from attnlab.kernels.measure import one_thread, peak_memory
from attnlab.machine import decide_bf16
from benchmarks.corpora import clm_features, mlm_features, squad_features, where_from
from benchmarks.table import Row, Table, Target, at_most, compared, less_by, share_of

ROUNDS = 2
SIDE = 1536
"""Rows and columns of the matrices whose product gives the peak."""
PEER, PEER_LIKE_OURS = "HF Trainer", "HF Trainer, padded like ours"
SAME = 0.01
"""How far the mean losses of both may be apart."""


@dataclass(frozen=True)
class Case:
    """A model, a task and how many steps of it are timed."""

    name: str
    task: Any
    config: dict[str, Any]
    architecture: str
    features: Callable[[Any, int], list[Any]]
    batch: int
    steps: int
    padded_to: int
    target: Target
    share: Target
    lr: float = 5e-4
    mechanism: str = "dot | softmax"


@dataclass
class Timing:
    """What a run of some steps took, and the loss it reached on rows that it did not train on."""

    seconds: float
    loss: float


def cases() -> list[Case]:
    """List what is compared."""
    from attnlab.tasks import load

    bert = {
        "hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 1024,
        "vocab_size": 30522,
    }  # fmt: skip
    gpt = {"n_layer": 3, "n_head": 3, "n_embd": 48, "vocab_size": 26604, "tie_word_embeddings": False}
    return [
        Case("MLM, 4 layers of 256, 48 × 128", load("mlm"), bert, "bert", mlm_features, 48, 5, 128,
             less_by(2.8), share_of(0.75)),
        Case("mini-GPT, 3 layers of 48, 32 × ≤ 100", load("clm", max_len=100), gpt, "gpt2", clm_features, 32, 12, 100,
             less_by(9), share_of(0.45)),
        Case("SQuAD, 4 layers of 256, 16 × ≤ 384", load("squad"), bert, "bert", squad_features, 16, 10, 384,
             less_by(2.4), share_of(0.75), lr=5e-5),
    ]  # fmt: skip


def table(rounds: int = ROUNDS, compared_cases: Sequence[Case] | None = None) -> Table:
    """Compare whole runs of a few steps, in turn."""
    pays, reason = decide_bf16()
    rows: list[Row] = []
    notes = [f"bf16 {'has rows of its own' if pays else 'has no rows'}: {reason}.", where_from()]
    num_apart = 0
    for case in cases() if compared_cases is None else compared_cases:
        features = case.features(case.task, (case.steps + 2) * case.batch)
        for precision in ("fp32", *(["bf16"] if pays else [])):
            taken, peak = compare(case, features, rounds, precision)
            name, has_targets = f"{case.name}, {precision}", precision == "fp32"
            for peer, target in ((PEER, case.target), (PEER_LIKE_OURS, None)):
                target = target if has_targets else None
                rows.append(Row(name, "time", taken["own"].seconds, peer, taken[peer].seconds, target))
            speed = count_operations(case, features) / taken["own"].seconds
            rows.append(Row(name, "speed", speed, "the peak", peak, case.share if has_targets else None))
            said, is_apart = same_loss(case, taken["own"], taken[PEER])
            notes.append(said)
            num_apart += is_apart
        if case.architecture == "gpt2":
            rows += more_of_mini_gpt(case, features, rounds)
    made = compared(
        "Whole runs of a few steps against Hugging Face's Trainer: the same batches, one thread", rows, notes
    )
    return Table(made.title, made.columns, made.rows, made.notes, made.num_missed + num_apart)


def more_of_mini_gpt(case: Case, features: list[Any], rounds: int) -> list[Row]:
    """Compare memory, and the additive score with the dot product."""
    own = peak_memory(lambda: run_own(case, features, steps=2, precision="fp32"))
    other = peak_memory(lambda: run_trainer(case, features, steps=2))
    additive = Case(**{**vars(case), "mechanism": "additive | softmax"})
    times: dict[str, float] = {}
    for _ in range(rounds + 1):
        for one in (additive, case):
            taken = run_own(one, features, precision="fp32").seconds
            times[one.mechanism] = min(times.get(one.mechanism, taken), taken)
    return [
        Row(case.name, "memory", own, "HF Trainer", other, less_by(2)),
        Row("mini-GPT with additive attention", "time", times["additive | softmax"], "mini-GPT with dot attention",
            times["dot | softmax"], at_most(1.5)),
    ]  # fmt: skip


def compare(case: Case, features: list[Any], rounds: int, precision: Any) -> tuple[dict[str, Timing], float]:
    """Run all in turn; return the best time of each, and the best speed of a large product in this precision."""
    ways: dict[str, Callable[[], Timing]] = {
        "own": lambda: run_own(case, features, precision=precision),
        PEER: lambda: run_trainer(case, features, precision=precision),
        PEER_LIKE_OURS: lambda: run_trainer(case, features, precision=precision, is_fixed=False),
    }
    best: dict[str, Timing] = {}
    peak = 0.0
    with one_thread():
        for _ in range(rounds):
            for name, way in ways.items():
                taken = way()
                if name not in best or taken.seconds < best[name].seconds:
                    best[name] = taken
                peak = max(peak, measure_peak(torch.bfloat16 if precision == "bf16" else torch.float32))
    return best, peak


def measure_peak(dtype: torch.dtype) -> float:
    """Return the operations per second of a product of large matrices, the best of some."""
    left, right = torch.randn(2, SIDE, SIDE).to(dtype)
    out = torch.empty_like(left)
    best = float("inf")
    for _ in range(4):
        start = process_time()
        torch.mm(left, right, out=out)
        best = min(best, process_time() - start)
    return 2 * SIDE**3 / best


def count_operations(case: Case, features: list[Any]) -> float:
    """Return the useful operations of the timed steps: of products, forward and backward, without padding."""
    from transformers.pytorch_utils import Conv1D

    from attnlab.training import FeatureStream, Segment

    model = build_model(case)
    weights = {
        name: module.weight.numel() for name, module in model.named_modules() if isinstance(module, nn.Linear | Conv1D)
    }
    in_body = sum(size for name, size in weights.items() if name.startswith(model.base_model_prefix))
    in_head = sum(weights.values()) - in_body
    is_causal = case.architecture == "gpt2"
    has_labels = case.task.name in ("mlm", "clm")
    stream = FeatureStream(case.task, features[: -case.batch], Segment(steps=case.steps, batch=case.batch), 0)
    forward = 0.0
    for step in range(1, case.steps):  # the first is not timed
        batch = stream.make(stream.arrangement.rows(0, step), 0)
        lengths = batch["attention_mask"].sum(1).double()
        pairs = float((lengths * (lengths + 1) / 2 if is_causal else lengths**2).sum())
        num_tokens = float(lengths.sum())
        num_labels = case.task.count(batch) if has_labels else num_tokens
        attention = 2 * pairs * model.config.num_hidden_layers * model.config.hidden_size
        forward += 2 * (num_tokens * in_body + num_labels * in_head + attention)
    return 3 * forward


def same_loss(case: Case, own: Timing, other: Timing) -> tuple[str, bool]:
    """Say whether both reached the same, and tell whether they did not."""
    apart = abs(own.loss - other.loss) / other.loss
    verdict = "the same" if apart <= SAME else "NOT THE SAME"
    said = (
        f"{case.name}: loss after the steps on other rows {own.loss:.4f}, HF Trainer's {other.loss:.4f}, "
        f"{100 * apart:.2f} % apart: {verdict} (within {100 * SAME:g} %)"
    )
    return said, apart > SAME


def loss_on(case: Case, model: Any, features: list[Any]) -> float:
    """Return the loss on the rows that were held out, computed in one way for both.

    Their own reports differ: the Trainer's counts the first token of a line among those predicted, and lets an answer
    begin in the padding.
    """
    with torch.no_grad():
        return float(case.task.loss(model.eval(), case.task.collate(features[-case.batch :])))


def build_model(case: Case) -> Any:
    """Build the model of a case, with the same weights each time."""
    import transformers

    from attnlab.training import initialise

    config = transformers.AutoConfig.for_model(
        case.architecture, pad_token_id=0, bos_token_id=1, eos_token_id=2, **{**case.config, **case.task.head_settings}
    )
    model = getattr(transformers, case.task.head).from_config(config)
    initialise(model, 0)
    return model


def run_own(case: Case, features: list[Any], steps: int | None = None, precision: Any = "auto") -> Timing:
    """Train with attnlab; the time is that of all steps but the first."""
    from attnlab.install import install
    from attnlab.training import FeatureStream, Job, Optimizer, Schedule, Segment, Settings, train

    segment = Segment(steps=steps or case.steps, batch=case.batch)
    settings = Settings(
        segments=[segment], optimizer=Optimizer(lr=case.lr), schedule=Schedule(warmup=0), precision=precision,
        divergence=None, log_every=1, checkpoint_every=10**6,
    )  # fmt: skip
    model = install(build_model(case), case.mechanism)
    stream = FeatureStream(case.task, features[: -case.batch], segment, 0)
    clock = clocked()
    with tempfile.TemporaryDirectory() as folder:
        train(Job(model, case.task, [stream], settings, threads=1), folder, clock)
    return Timing(clock.times[-1] - clock.times[0], loss_on(case, model, features))


def clocked() -> Any:
    """Make a display that only notes when each step came."""
    from attnlab.training import Display

    class Clock(Display):
        """Shows nothing."""

        def __init__(self) -> None:
            super().__init__(is_quiet=True)
            self.times: list[float] = []

        def advance(self, step: int, num_steps: int, tokens: int, loss: float) -> float:
            """Note a step."""
            self.times.append(process_time())
            return 0.0

    return Clock()


def run_trainer(
    case: Case, features: list[Any], steps: int | None = None, *, is_fixed: bool = True, precision: str = "fp32"
) -> Timing:
    """Train with Hugging Face's Trainer on the batches that attnlab takes; padded to one length, or to the longest."""
    import transformers
    from torch.utils.data import SequentialSampler

    from attnlab.training import FeatureStream, Segment

    steps = steps or case.steps
    segment = Segment(steps=steps, batch=case.batch)
    arrangement = FeatureStream(case.task, features[: -case.batch], segment, 0).arrangement
    ordered = [features[row] for step in range(steps) for row in arrangement.rows(0, step)]
    times: list[float] = []

    class InOrder(transformers.Trainer):
        """Takes examples as they come."""

        def _get_train_sampler(self, *given: Any) -> Any:
            return SequentialSampler(ordered)

    class Clock(transformers.TrainerCallback):
        """Notes when each step ended."""

        def on_step_end(self, *given: Any, **more: Any) -> None:
            """Note a step."""
            times.append(process_time())

    def collate(rows: list[Any]) -> dict[str, torch.Tensor]:
        batch = {name: tensor for name, tensor in case.task.collate(rows).items() if name != "token_type_ids"}
        return {name: widen(name, tensor, case.padded_to) for name, tensor in batch.items()} if is_fixed else batch

    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(
            folder, max_steps=steps, per_device_train_batch_size=case.batch, learning_rate=case.lr, weight_decay=0.01,
            use_cpu=True, report_to="none", log_level="error", save_strategy="no", disable_tqdm=True,
            logging_strategy="no", remove_unused_columns=False, bf16=precision == "bf16",
        )  # fmt: skip
        trainer = InOrder(
            build_model(case), arguments, train_dataset=ordered, data_collator=collate, callbacks=[Clock()]
        )
        trainer.remove_callback(transformers.PrinterCallback)
        trainer.train()
    return Timing(times[-1] - times[0], loss_on(case, trainer.model, features))


def widen(name: str, tensor: torch.Tensor, width: int) -> torch.Tensor:
    """Pad a batch to one length, whatever is in it."""
    if tensor.dim() != 2 or tensor.shape[1] >= width:
        return tensor
    fill = -100 if name == "labels" else 0
    return torch.nn.functional.pad(tensor, (0, width - tensor.shape[1]), value=fill)
