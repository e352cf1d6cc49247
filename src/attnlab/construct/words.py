"""Keys, numbers and sums as text."""

from collections.abc import Sequence

from torch import Tensor

from attnlab.kernels.rounding import is_rounding

MAX_TERMS = 5


def short(number: float) -> str:
    """Write a number with three significant digits."""
    return f"{number:.3g}".replace("-", "−")


def name_key(index: int) -> str:
    """Name a key by its number, counted from 0."""
    return f"k{index}"


def name_keys(indices: Sequence[int]) -> str:
    """Name keys: k0, k1 and k2; only their number if there are many."""
    if len(indices) > MAX_TERMS:
        return f"{len(indices)} keys"
    names = [name_key(index) for index in indices]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def equation(coefficients: Tensor) -> str:
    """Write a weighted sum of keys, only the largest weights if there are many: 0.5·k0 + 0.5·k1."""
    largest_weight = coefficients.abs().max().item() if len(coefficients) else 0.0
    terms = {
        index: weight
        for index, weight in enumerate(coefficients.tolist())
        if weight != 0 and not is_rounding(weight, largest_weight)
    }
    largest = sorted(sorted(terms, key=lambda index: -abs(terms[index]))[:MAX_TERMS])
    text = ""
    for index in largest:
        weight = terms[index]
        sign = (" − " if weight < 0 else " + ") if text else ("−" if weight < 0 else "")
        size = short(abs(weight))
        text += f"{sign}{'' if size == '1' else size + '·'}{name_key(index)}"
    left_out = len(terms) - len(largest)
    return text + (f" + {left_out} more" if left_out else "")
