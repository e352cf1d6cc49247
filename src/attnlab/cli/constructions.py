"""A construction as `attnlab construct` prints it: a table of its keys with shaded weights, or a record."""

import math
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from attnlab.cli.tables import print_table

if TYPE_CHECKING:
    from torch import Tensor

    from attnlab.construct import ArgmaxResult, Extraction, Focus, Placement, Selections, Strength

    Result = ArgmaxResult | Extraction | Focus | Placement | Selections | Strength

MAX_ROWS, MAX_NUMBERED = 20, 8
"""The largest number of keys with their own row, and of columns with numbers."""
BLOCKS = " ░▒▓█"
LETTERS = " .:*#"
"""For terminals that cannot print blocks."""
LEAST = 0.02
"""The smallest share that is shaded."""

FIELDS = {
    "Focus": (
        "feasible", "subset", "query", "weights", "output", "error", "direction", "margin", "strength",
        "naive_query", "naive", "combination", "affine", "residual",
    ),
    "Selections": ("feasible", "impossible", "query", "weights", "output", "error"),
    "Strength": ("num_keys", "head_dim", "weight", "query", "weights", "output", "error", "alone"),
    "Extraction": (
        "matrix", "basis", "other", "is_orthonormal", "angles", "value_a", "value_b", "query", "weights", "mixture",
        "output", "error", "largest_error", "oblique", "oblique_error",
    ),
    "ArgmaxResult": (
        "index", "is_tie", "query", "weights", "output", "error", "gradient", "softmax_weights", "softmax_output",
        "softmax_gradient",
    ),
    "Placement": ("feasible", "goal", "subset", "query", "key", "weights", "output", "error", "least_norm", "strength"),
}  # fmt: skip
"""The fields of the record of each kind of result."""


def make_record(result: "Result") -> dict[str, Any]:
    """Return a construction as plain data; infinite values and NaN become null."""
    name = type(result).__name__
    value = {"strength": _convert_to_plain(float(result))} if isinstance(result, float) else {}
    fields = {field: _convert_to_plain(getattr(result, field)) for field in FIELDS[name]}
    return {"sentence": str(result), **value, **fields}


def _convert_to_plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_convert_to_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_construction(result: "Result") -> None:
    """Print a construction's sentence, its query or matrix, and a table with a row for each key."""
    print(result)
    printers = {
        "Focus": _print_focus, "Selections": _print_selections, "Strength": _print_strength,
        "Extraction": _print_extraction, "ArgmaxResult": _print_argmax, "Placement": _print_placement,
    }  # fmt: skip
    printers[type(result).__name__](result)


def _print_focus(result: Any) -> None:
    """Print the weights beside those of the naive query, or the two equal combinations that prove there is none."""
    if result.query is None:
        subset = "of the key" if len(result.subset) == 1 else "of the subset"
        columns = {subset: result.affine, "of the others": result.combination}
    else:
        _print_vector("query", result.query)
        naive = "q = the key" if len(result.subset) == 1 else "q = the mean"
        columns = {naive: result.naive, "constructed": result.weights}
        _print_output(result)
    print()
    _print_keys(result, columns)


def _print_selections(result: Any) -> None:
    print()
    names = [f"k{i}" for i in range(len(result.each))]
    write = format_weight if len(names) <= MAX_NUMBERED else shade
    rows = [
        [name, *(write(weight) for weight in row)] for name, row in zip(names, result.weights.tolist(), strict=True)
    ]
    print_table(("query", *names), rows)


def _print_strength(result: Any) -> None:
    print()
    alone = result.problem.weights(result.problem.keys[0] + result.problem.keys[1])
    _print_keys(None, {"q = k0 + k1": alone, f"q = {float(result):.4g}·(k0 + k1)": result.weights})


def _print_extraction(result: Any) -> None:
    vectors = {"v_a": result.value_a, "(v_a + v_b)/2": result.mixture, "M(v_a + v_b)/2": result.output}
    largest = max(float(vector.abs().max()) for vector in vectors.values())
    rows = [
        [f"x{i}", *(format_weight(float(vector[i]), largest) for vector in vectors.values())]
        for i in range(len(result.value_a))
    ]
    print(f"angles between the subspaces: {', '.join(f'{angle:.1f}°' for angle in result.angles.tolist()) or 'none'}\n")
    print_table(("", *vectors), rows[:MAX_ROWS])
    if len(result.matrix) <= MAX_NUMBERED:
        print("\nM = 2AAᵀ:")
        for row in result.matrix.tolist():
            print("  ".join(f"{round(part, 3) + 0.0:6.3f}" for part in row))


def _print_argmax(result: Any) -> None:
    _print_output(result)
    print()
    _print_keys(result, {"softmax": result.softmax_weights, "argmax": result.weights})


def _print_placement(result: Any) -> None:
    _print_vector("new key", result.key)
    _print_output(result)
    print()
    before = [*result.before.tolist(), math.nan]
    _print_keys(result, {"before": before, "with the new key": result.weights})


def _print_keys(result: Any, weights: Mapping[str, Any]) -> None:
    """Print a row per key. result: None omits coordinates, which are shown if they are few, and scores."""
    columns = {name: [float(part) for part in column] for name, column in weights.items()}
    notes = {}
    if result is not None and result.problem.keys.shape[1] <= 4:
        notes["at"] = [f"({', '.join(_format_numbers(row, 3))})" for row in result.problem.keys]
    if result is not None and result.query is not None:
        notes["score"] = _format_scores(result)
    count = len(next(iter(columns.values())))
    rows = [
        [f"k{i}", *(note[i] for note in notes.values()), *(format_weight(column[i]) for column in columns.values())]
        for i in range(min(count, MAX_ROWS))
    ]
    print_table(("key", *notes, *columns), rows)
    if count > MAX_ROWS:
        rest = ", ".join(f"{name} {sum(column[MAX_ROWS:]):.3f}" for name, column in columns.items())
        print(f"and {count - MAX_ROWS} more keys, together: {rest}")


def _print_vector(name: str, vector: "Tensor") -> None:
    shown = _format_numbers(vector[:MAX_NUMBERED])
    more = f", … ({len(vector)} numbers)" if len(vector) > MAX_NUMBERED else ""
    print(f"{name}: {', '.join(shown)}{more}")


def _print_output(result: Any) -> None:
    # Without values the output is the weights, which the table shows.
    if result.problem.values is not None:
        _print_vector("output", result.output)


def _format_numbers(vector: Iterable[float], digits: int = 4) -> list[str]:
    from attnlab.kernels.rounding import is_rounding

    parts = [float(part) for part in vector]
    largest = max(map(abs, parts), default=0.0)
    return ["0" if is_rounding(part, largest) else f"{part:.{digits}g}" for part in parts]


def _format_scores(result: Any) -> list[str]:
    """Write the scores of the keys; one that is the rounding of its products is 0."""
    from attnlab.kernels.rounding import is_rounding

    keys, query = result.problem.keys, result.query
    scores = result.problem.scores(query).tolist()
    sizes = (result.problem.scale * keys.abs() @ query.abs()).tolist()
    return [
        "0" if is_rounding(score, size, keys.shape[1]) else f"{score:.4g}"
        for score, size in zip(scores, sizes, strict=True)
    ]


def shade(share: float) -> str:
    """Return two characters that are darker the nearer a share is to 1; blanks for less than LEAST."""
    ramp = BLOCKS if _can_print(BLOCKS) else LETTERS
    if math.isnan(share) or abs(share) < LEAST:
        return ramp[0] * 2
    most = len(ramp) - 1
    return ramp[max(1, min(most, round(abs(share) * most)))] * 2


def format_weight(value: float, largest: float = 1.0) -> str:
    """Return a number with three decimals after its shade; a dash for NaN."""
    if math.isnan(value):
        return "   –"
    return f"{shade(value / largest if largest else 0.0)} {round(value, 3) + 0.0:.3f}"


def _can_print(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
