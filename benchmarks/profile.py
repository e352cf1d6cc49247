"""Where the time of a training step goes: why its share of the peak in `training` is what it is.

Times of operations by torch's profiler, of a run of many steps less one of few, so that the start of a run is not in
it. Products are those of linear layers, attention and the vocabulary head; their speed counts the same operations as
`training` does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from attnlab.kernels.measure import one_thread
from benchmarks.corpora import where_from
from benchmarks.table import Table
from benchmarks.training import Case, cases, count_operations, measure_peak, run_own

KINDS = {
    "matrix products": ("mm", "addmm", "addmm_", "bmm", "baddbmm", "baddbmm_", "_scaled_dot_product"),
    "random numbers of dropout": ("bernoulli_", "random_", "native_dropout"),
    "activations": ("gelu", "gelu_backward", "tanh", "tanh_backward", "pow"),
    "exponentials and softmax": ("exp", "exp_", "_softmax", "_softmax_backward_data", "_SummedLoss", "sub_", "amax"),
    "normalisation of layers": ("native_layer_norm", "native_layer_norm_backward"),
    "copies and fills": ("copy_", "fill_", "zero_", "index", "embedding_dense_backward", "masked_fill_"),
    "sums and products by element": ("add", "add_", "mul", "mul_", "div", "div_", "sum", "ge", "where"),
    "optimizer and clipping": ("_fused_adamw_", "linalg_vector_norm", "_foreach_norm", "_foreach_mul_"),
}
"""Operations of torch by kind; all others are one kind. The compiled loops of a head count to the loss's own time."""
OTHER = "other operations"
FEW = 2
COLUMNS = ("what", "where", "share of the time", "time of a step")


def table(compared_cases: Sequence[Case] | None = None) -> Table:
    """Profile a step of each case, in fp32 on one thread."""
    rows: list[tuple[str, ...]] = []
    for case in cases() if compared_cases is None else compared_cases:
        features = case.features(case.task, (case.steps + 2) * case.batch)
        with one_thread():
            peak = measure_peak(torch.float32)
            few, many = (_profile(case, features, steps) for steps in (FEW, case.steps))
        num_steps = case.steps - FEW
        seconds = {kind: max(0.0, many[kind] - few[kind]) / num_steps for kind in (*KINDS, OTHER)}
        total = sum(seconds.values()) or 1.0
        for kind, taken in sorted(seconds.items(), key=lambda item: -item[1]):
            rows.append((case.name, kind, f"{100 * taken / total:.0f} %", f"{1000 * taken:.1f} ms"))
        products = seconds["matrix products"] or 1.0
        speed = count_operations(case, features) / (case.steps - 1) / products
        share = f"{100 * speed / peak:.0f} % of the peak"
        rows.append((case.name, "useful operations by the time of products alone", share, ""))
    return Table("Where a training step spends its time, fp32, one thread", COLUMNS, rows, [where_from()], 0)


def _profile(case: Case, features: list[Any], steps: int) -> Counter[str]:
    """Return the seconds of a run by kind of operation."""
    kinds = {name: kind for kind, names in KINDS.items() for name in names}
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        run_own(case, features, steps=steps, precision="fp32")
    seconds: Counter[str] = Counter()
    for event in profiler.key_averages():
        name = event.key.removeprefix("aten::")
        seconds[kinds.get(name, OTHER)] += event.self_cpu_time_total / 1e6  # microseconds
    return seconds
