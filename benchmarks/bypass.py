"""The value bypass V' = V + α·ReLU(x) in a whole attention layer, its four projections included."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from attnlab.kernels import attend
from attnlab.kernels.comparison import Setting
from attnlab.kernels.measure import measure, training_step
from attnlab.mechanisms import Mechanism
from benchmarks.table import Table, at_most, compared, memory_row, sizes, time_row

BASELINE = "dot | softmax"
BYPASS = "dot | softmax | bypass(alpha=0.5)"
SETTING = Setting(batch=16)


def table(setting: Setting = SETTING, length: int = 128, budget: float = 15) -> Table:
    """Compare the layer with the bypass and without it."""
    width = setting.num_heads * setting.head_dim
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(setting.batch, length, width, generator=generator)
    projections = torch.randn(4, width, width, generator=generator) / width**0.5
    steps = {line: training_step(layer(Mechanism.parse(line), setting), x, *projections) for line in (BASELINE, BYPASS)}
    taken = measure(steps, budget)
    with_bypass, baseline = taken[BYPASS], taken[BASELINE]
    rows = [
        time_row(f"a layer of {BYPASS}", with_bypass, BASELINE, baseline, at_most(1.05)),
        memory_row(f"a layer of {BYPASS}", with_bypass, BASELINE, baseline),
    ]
    return compared(f"Bypass in an attention layer, forward and backward: {sizes(setting, length)}", rows)


def layer(mechanism: Mechanism, setting: Setting) -> Callable[..., Tensor]:
    """Return self-attention over x [b n w] with four projections [w w]; stages act on projected values."""

    def split(x: Tensor) -> Tensor:
        return x.view(*x.shape[:2], setting.num_heads, setting.head_dim).transpose(1, 2)

    def attention(x: Tensor, query: Tensor, key: Tensor, value: Tensor, out: Tensor) -> Tensor:
        q, k, v = (F.linear(x, projection) for projection in (query, key, value))
        for stage in mechanism.values:
            v = stage(v, x, v, {})
        mixed = attend(split(q), split(k), split(v), BASELINE, causal=setting.causal)
        return F.linear(mixed.transpose(1, 2).flatten(2), out)

    return attention
