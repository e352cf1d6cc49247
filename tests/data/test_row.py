"""Rows are identified by their content."""

from attnlab.data.row import hash_rows


def test_the_hash_depends_on_content_and_order_of_rows_only() -> None:
    rows = [{"text": "one", "label": 1}, {"text": "two", "label": 0}]
    assert hash_rows(rows) == hash_rows([{"label": 1, "text": "one"}, {"label": 0, "text": "two"}])
    assert hash_rows(rows) != hash_rows(rows[::-1])
    assert hash_rows(rows) != hash_rows(rows[:1])
