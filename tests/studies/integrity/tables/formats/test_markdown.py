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


def test_each_table_has_its_own_text() -> None:
    table = "| M | x |\n|--|--|\n| a | 1 |\n"
    text = f"Intro.\n\n{table}\nbelow one\n\n## B\n\nabove two\n\n{table}\nabove three\n\n{table}\nafter three\n"
    captions = [" ".join(block.caption.split()) for block in find_markdown(text.splitlines())]
    assert captions == ["Intro. below one", "## B above two", "above three after three"]
    (only,) = find_markdown(f"before\n\n{table}\n## C\n\nafter\n".splitlines())
    assert "before" in only.caption
    assert "after" in only.caption
