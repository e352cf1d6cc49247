"""What is worth comparing: neither headings nor a few words, however many marks stand among them."""

from __future__ import annotations

import pytest

from attnlab.data.audit.overlap import find_overlap, is_comparable


@pytest.mark.parametrize(
    ("text", "is_compared"),
    [
        ("Ada met Bruno near the mill", True),
        (" = = = Pre @-@ war career = = = ", False),
        (" = = A heading of many more words than five = = ", False),
        (" 3 ", False),
        ("a , b . c ; d", False),
        ("if a = b = c then all of them are one", True),
    ],
)
def test_headings_and_a_few_words_are_not_compared(text: str, is_compared: bool) -> None:
    assert is_comparable(text) is is_compared


def test_headings_that_recur_are_no_overlap() -> None:
    heading = " = = = Pre @-@ war career = = = "
    found = find_overlap([heading, "Ada met Bruno near the mill"], [heading, "Ada met Clara near the mill"])
    assert (found.num_lines, found.num_equal_lines) == (1, 0)
