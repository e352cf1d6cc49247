"""Broken characters and removed punctuation are counted; sound text is not flagged."""

import pytest

from attnlab.data.audit.text_quality import ENOUGH, Encoding, Punctuation


@pytest.mark.parametrize(
    ("document", "counts"),
    [
        ("plain", (0, 0)),
        ("café, naïve, 北京, Â, Ã, â", (0, 0)),
        ("caf\ufffd", (1, 0)),
        ("cafÃ©", (0, 1)),
        ("itâ€™s", (0, 1)),
        ("\ufffd and cafÃ©", (1, 0)),
    ],
)
def test_broken_characters_are_counted_by_document(document: str, counts: tuple[int, int]) -> None:
    encoding = Encoding()
    encoding.add(1, document)
    assert (encoding.replaced, encoding.mojibake) == counts
    assert bool(encoding.first) == any(counts)


def test_the_first_broken_document_is_quoted() -> None:
    encoding = Encoding()
    for number, document in enumerate(["fine", "x" * 50 + "\ufffd", "Ã©"], start=1):
        encoding.add(number, document)
    assert encoding.first == f"document 2: {'x' * 20 + chr(0xFFFD)!r}"


def test_only_long_lines_need_a_mark() -> None:
    punctuation = Punctuation()
    punctuation.add("A heading\n1 2 3 4 5 6 7 8\nOne, two, three, four, five, six, seven, eight.")
    assert (punctuation.num_long, punctuation.num_bare, punctuation.num_words) == (2, 1, 18)
    assert punctuation.bare_share == 0.5
    assert punctuation.marks == {".": 1, ",": 7, ";": 0, ":": 0, "!": 0, "?": 0}


@pytest.mark.parametrize(
    ("line", "is_stripped"),
    [
        ("one, two three four five six seven eight.", False),
        ("one two three four five six seven eight", True),
        ("one, two three four five six seven eight", True),
        ("one two three four five six seven eight.", True),
    ],
)
def test_text_without_marks_full_stops_or_commas_is_stripped(line: str, is_stripped: bool) -> None:
    punctuation = Punctuation()
    punctuation.add("\n".join([line] * (ENOUGH - 1)))
    assert not punctuation.is_stripped  # too few lines
    punctuation.add(line)
    assert punctuation.is_stripped == is_stripped
