"""Numbers below the smallest normal one: processors multiply them many times more slowly than others."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


def is_flushing() -> bool:
    """Tell whether this thread rounds such numbers to 0 already."""
    tiny = torch.full((1,), torch.finfo(torch.float32).tiny)
    return float(tiny * 0.5) == 0.0


@contextmanager
def flush_denormals(device: str) -> Iterator[None]:
    """Round such numbers to 0 on this thread, on a CPU, unless a compiler traces."""
    if device != "cpu" or torch.compiler.is_compiling() or is_flushing():
        yield
        return
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)
