"""Markdown tables, with or without outer bars, with emphasis, links and escaped bars."""

from attnlab.studies.integrity.tables.formats.markdown import find_markdown


def test_tables_of_a_text() -> None:
    first_table = "A | B\n--|:-:\n`dot \\| relu` | **1.5**\n[x](u) | 2<sup>a</sup> \n"
    text = f"# R\n\n{first_table}\n| C | D |\n|---|---|\n| 1 |\n| a | b |\n"
    first, second = find_markdown(text.splitlines())
    assert (first.line, first.header, [row for _, row in first.rows]) == (
        3,
        ["A", "B"],
        [["dot | relu", "1.5"], ["x", "2 a"]],
    )
    assert [row for _, row in second.rows] == [["1", ""], ["a", "b"]]
    assert find_markdown(["a,b", "1,2", "---"]) == []
