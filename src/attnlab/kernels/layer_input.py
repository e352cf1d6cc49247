"""The layer's input x as `attend` gets it: [b n m], or split by heads like q, [b h n d]; for the keys, or a pair."""

from torch import Tensor

from attnlab.errors import RequestError, ShapeError
from attnlab.mechanisms import LayerInput, Mechanism

GivenInput = Tensor | tuple[Tensor, Tensor] | LayerInput | None
"""What a caller may pass: x at the tokens of the keys (queries are the last of them), or a pair (queries, keys)."""


def as_layer_input(given: GivenInput, q: Tensor, k: Tensor, num_axes: int) -> LayerInput | None:
    """Return x at queries and keys; `num_axes` is the number of axes that q was passed with.

    With as many axes as q, x is split by heads; with one fewer, it is not.
    """
    if given is None:
        return None
    num_queries, num_keys = q.shape[2], k.shape[2]
    if isinstance(given, LayerInput):
        given = (given.queries, given.keys)
        num_axes = 4
    if isinstance(given, tuple):
        queries, keys = (_merge_heads(x, num_axes, len(q)).to(q) for x in given)
        if queries.shape[1] not in (0, num_queries) or keys.shape[1] not in (0, num_keys):
            raise ShapeError(
                f"x of the queries and keys must have {num_queries} and {num_keys} tokens, not {queries.shape[1]} and "
                f"{keys.shape[1]}"
            )
        return LayerInput(queries, keys)
    x = _merge_heads(given, num_axes, len(q)).to(q)
    if x.shape[1] == num_keys and num_queries <= num_keys:
        return LayerInput(x[:, num_keys - num_queries :], x)
    if x.shape[1] in (num_queries, num_keys):
        nothing = x[:, :0]
        return LayerInput(x, nothing) if x.shape[1] == num_queries else LayerInput(nothing, x)
    raise ShapeError(
        f"x must have a row for each of the {num_keys} keys (or be a pair: x of the {num_queries} queries, x of the "
        f"keys); it has {x.shape[1]}"
    )


def _merge_heads(x: Tensor, num_axes: int, batch: int) -> Tensor:
    """Return x as [b n m]."""
    if not isinstance(x, Tensor) or not x.is_floating_point():
        raise ShapeError(f"x must be a tensor of floats, not {x.dtype if isinstance(x, Tensor) else type(x).__name__}")
    if x.dim() == num_axes:
        x = x.reshape((1,) * (4 - x.dim()) + tuple(x.shape)).transpose(1, 2).flatten(2)
    elif x.dim() == num_axes - 1:
        x = x.reshape((1,) * (3 - x.dim()) + tuple(x.shape))
    else:
        raise ShapeError(
            "x must be [batch, length, model_dim], or split by heads like q, [batch, heads, length, head_dim]; its "
            f"shape is {tuple(x.shape)}"
        )
    if len(x) not in (1, batch):
        raise ShapeError(f"x has a batch of {len(x)}, and q one of {batch}")
    return x.expand(batch, -1, -1)


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """Return [b n m] as [b h n d]."""
    heads: Tensor = x.unflatten(-1, (num_heads, -1))
    return heads.transpose(1, 2)


def check_layer_input(mechanism: Mechanism, x: LayerInput | None, num_queries: int, num_keys: int) -> None:
    """Refuse a call without the layer's input that a stage needs, or with that of other tokens."""
    for stage in mechanism.find_stages_needing("x"):
        if not stage.inputs.get("x", True):
            continue
        if x is None:
            raise RequestError(
                f"'{stage}' needs the layer's input, and this call has none: pass x= [batch, length, model_dim]"
            )
        needed, given = (num_queries, x.queries) if stage.slot == "output" else (num_keys, x.keys)
        if given.shape[1] != needed:
            raise RequestError(
                f"'{stage}' needs the layer's input of {needed} tokens, and x has none of them: pass a pair, x of the "
                f"{num_queries} queries and x of the {num_keys} keys"
            )


def find_model_dim(x: LayerInput | None) -> int:
    """Return the width of x, or 0 if it is unknown."""
    return 0 if x is None else max(x.queries.shape[-1], x.keys.shape[-1])
