"""FlexAttention, torch's own way to vary attention: forward alone, since it has no backward on the CPU, and
softmax alone, since it always normalises: relu, sigmoid or identity weights cannot be written in it."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from attnlab.kernels import attend
from attnlab.kernels.comparison import Setting
from attnlab.kernels.measure import Step, measure, one_thread
from benchmarks.table import Table, compared, memory_row, sizes, time_row

SETTING = Setting()
PLAIN, BIASED = "dot | softmax", "torch's SDPA with a bias −|i−j|/2ʰ as its mask"
NOTES = (
    "FlexAttention is compiled beforehand. It has no backward pass on the CPU: it cannot train here.",
    "It always applies softmax: pointwise and linear mechanisms cannot be written in it, and have no row.",
)


def table(setting: Setting = SETTING, length: int = 2048, budget: float = 8) -> Table:
    """Compare softmax attention, plain and with a bias that grows with the distance."""
    steps, notes = peer_steps(setting, length), list(NOTES)
    for name, step in flex_steps(setting, length).items():
        try:
            with one_thread():
                step()
        except Exception as error:  # whatever torch's compiler raises: the table is to say that it did
            notes.append(f"Failed here, {name}: {type(error).__name__}: {str(error).splitlines()[0]}")
        else:
            steps[name] = step
    taken = measure(steps, budget)
    rows = []
    for what, peer in ((PLAIN, f"flex, {PLAIN}"), (BIASED, f"flex, {BIASED}")):
        if peer in taken:
            rows.append(time_row(what, taken[what], "FlexAttention", taken[peer]))
            rows.append(memory_row(what, taken[what], "FlexAttention", taken[peer]))
    return compared(f"FlexAttention, forward alone: {sizes(setting, length)}", rows, notes)


def peer_steps(setting: Setting, length: int) -> dict[str, Step]:
    """Return attnlab's softmax attention, and SDPA with the bias as a mask of numbers."""
    q, k, v = setting.inputs(length)
    rate = slopes(setting)[:, None, None]
    position = torch.arange(length)
    distance = position[:, None] - position
    mask = (-rate * distance).masked_fill(distance < 0, -torch.inf)[None]
    return {
        PLAIN: lambda: attend(q, k, v, PLAIN, causal=True),
        BIASED: lambda: F.scaled_dot_product_attention(q, k, v, mask),
    }


def flex_steps(setting: Setting, length: int) -> dict[str, Step]:
    """Return the same through FlexAttention."""
    q, k, v = setting.inputs(length)
    rate = slopes(setting)

    def is_earlier(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return i >= j

    def biased(score: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return score - rate[h] * (i - j)

    blocks = create_block_mask(is_earlier, None, None, length, length, device="cpu")

    def step(score_mod: Callable[..., Tensor] | None) -> Step:
        compiled = torch.compile(flex_attention, dynamic=False)
        return lambda: compiled(q, k, v, score_mod=score_mod, block_mask=blocks)

    return {f"flex, {PLAIN}": step(None), f"flex, {BIASED}": step(biased)}


def slopes(setting: Setting) -> Tensor:
    """Return how fast the bias of each head grows with the distance."""
    return 2.0 ** -torch.arange(setting.num_heads)
