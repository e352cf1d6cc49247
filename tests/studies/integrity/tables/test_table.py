"""A result table lists its arms, metrics and steps, and can be restricted to some of its cells."""

from attnlab.studies.integrity.tables.table import Cell, ResultTable, group_cells, join_words, show_step

CELLS = tuple(
    Cell(arm, "small", "f1", "1", step, value, str(value), f"line {step}")
    for arm in ("new", "base") for step, value in ((100.0, 0.5), (200.0, 0.6), (300.0, None))
)  # fmt: skip
TABLE = ResultTable("t.csv", (), CELLS, "base")


def test_the_baseline_is_the_first_arm_and_failed_runs_have_no_step() -> None:
    assert TABLE.arms == ["base", "new"]
    assert (TABLE.groups, TABLE.metrics, TABLE.steps) == (["small"], ["f1"], [100.0, 200.0])
    assert len(TABLE.values) == 4


def test_cells_can_be_left_out() -> None:
    assert TABLE.up_to(100.0).steps == [100.0]
    assert TABLE.up_to(None) is TABLE
    assert TABLE.without(CELLS[:3]).arms == ["base"]


def test_a_number_of_examples_replaces_that_of_every_cell() -> None:
    assert {cell.num_examples for cell in TABLE.with_num_examples(50).cells} == {50}
    assert TABLE.with_num_examples(None) is TABLE


def test_cells_are_grouped_in_order_and_named_in_words() -> None:
    groups = group_cells(CELLS, lambda cell: cell.run)
    assert {run: len(cells) for run, cells in groups.items()} == {("new", "small", "1"): 3, ("base", "small", "1"): 3}
    assert CELLS[0].title == "new small f1"
    assert join_words("a", "", "b") == "a b"
    assert (show_step(None), show_step(1500.0)) == ("the table", "step 1500")
