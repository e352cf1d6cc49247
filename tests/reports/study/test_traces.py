"""Final traces: a row per layer, the mean over heads and seeds per arm."""

from pathlib import Path

from .made import BASE, HIGH, Made, history
from .reading import contents


def test_a_layer_has_the_mean_over_heads_and_seeds(tmp_path: Path) -> None:
    made = Made(tmp_path).give("dot", BASE, metrics=history()).give("better", HIGH, metrics=history(shift=-0.5))
    (table,) = contents(made.done()).traces
    assert table.title == "Entropy of attention in nats: recall, tiny"
    assert table.arms == ["dot", "better"]
    assert table.rows == [("h.0.attn", ["1.5", "1.25"])]


def test_what_was_not_traced_has_no_table(tmp_path: Path) -> None:
    assert contents(Made(tmp_path).give("dot", BASE).done()).traces == []
