"""How much of a key is left for a query: exp(F_i − F_j), with F the running sum of log f over the tokens."""

from dataclasses import dataclass

import torch
from torch import Tensor

from attnlab.errors import RequestError
from attnlab.mechanisms import Forget, LayerInput, Mechanism, Params, Positions
from attnlab.mechanisms.stage import check_result

from .failures import call_stage
from .positions import find_own_keys, find_seen_keys, take_own
from .visibility import Visibility


@dataclass(frozen=True, eq=False)
class Decay:
    """F at the tokens of the queries and of the keys, [b|1 h q c] and [b|1 h k c], in fp32 at least.

    c is 1, or head_dim for a decay per channel.
    """

    queries: Tensor
    keys: Tensor

    @property
    def logarithms(self) -> Tensor:
        """−|F_i − F_j| for every pair, [b|1 h q k] or per channel [b|1 h q k d]."""
        if self.keys.shape[-1] == 1:
            return -(self.queries - self.keys.mT).abs()
        return -(self.queries[..., :, None, :] - self.keys[..., None, :, :]).abs()


def make_decay(
    mechanism: Mechanism, x: LayerInput | None, k: Tensor, p: Params, visibility: Visibility,
    positions: Positions | None,
) -> Decay | None:  # fmt: skip
    """Return the decay of a call, or None if its mechanism forgets nothing."""
    stage = mechanism.forget
    if stage is None:
        return None
    kept = call_stage(stage, stage.log_kept, None if x is None else x.keys, mechanism.params_of(stage, p), k)
    _check_kept(stage, kept, k)
    kept = kept.to(torch.promote_types(kept.dtype, torch.float32))
    if visibility.mask is not None:
        # Padding, and what a mask hides from all queries, is no token.
        kept = kept.masked_fill(~find_seen_keys(visibility)[..., None], 0)
    sums = kept.cumsum(2)
    own = find_own_keys(positions, visibility)
    # A token that is not among the keys has forgotten what the last key in its sight has.
    last = find_own_keys(None, visibility).clamp(min=0)
    return Decay(take_own(sums, torch.where(own < 0, last, own)), sums)


def _check_kept(stage: Forget, kept: object, k: Tensor) -> None:
    """Refuse shares of another shape than [b|1 h n c], and, where reading them does not wait for a GPU, above 1."""
    batch = kept.shape[0] if isinstance(kept, Tensor) and kept.dim() == 4 and len(kept) == 1 else k.shape[0]
    check_result(stage, kept, (batch, *k.shape[1:3], k.shape[3] if stage.is_per_channel else 1))
    assert isinstance(kept, Tensor)
    is_known = not torch.compiler.is_compiling() and kept.device.type == "cpu"
    if is_known and bool((kept.detach() > 16 * torch.finfo(kept.dtype).eps).any()):
        raise RequestError(
            f"log_kept of '{stage}' must return log f ≤ 0, the logarithm of the share of the past that a token keeps, "
            f"and returned {float(kept.detach().max()):.3g}; if it returns f itself, return its logarithm, such as "
            "torch.nn.functional.logsigmoid(…)"
        )


def make_strengths(
    mechanism: Mechanism, x: LayerInput | None, k: Tensor, p: Params, visibility: Visibility
) -> Tensor | None:
    """Return β of the delta rule, [b h k 1], 0 for keys that no query sees; None without the rule."""
    stage = mechanism.delta
    if stage is None:
        return None
    beta = stage.strengths(None if x is None else x.keys, mechanism.params_of(stage, p), k)
    if visibility.mask is not None:
        beta = beta.masked_fill(~find_seen_keys(visibility)[..., None], 0)
    return beta


def solve_delta(k: Tensor, v: Tensor, beta: Tensor, decay: Decay | None) -> Tensor:
    """Return u = (I + tril(β K Kᵀ, −1))⁻¹ β V, with k_i·k_j times exp(F_i − F_j): the definition, all pairs at once."""
    wide = torch.promote_types(k.dtype, torch.float32)
    k, v, beta = (x.to(wide) for x in (k, v, beta))
    pairs = k @ k.mT
    if decay is not None:
        pairs = pairs * Decay(decay.keys, decay.keys).logarithms.to(wide).exp()
    solved: Tensor = torch.linalg.solve_triangular((beta * pairs).tril(-1), beta * v, upper=False, unitriangular=True)
    return solved
