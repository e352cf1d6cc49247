"""Control characters and overrides of direction never reach a terminal or a page as themselves."""

from __future__ import annotations

import io
import json
import sys
import unicodedata

import pytest

from attnlab.visible import get_unfiltered_stream, make_output_visible, make_values_visible, make_visible, print_visibly


def test_every_control_and_direction_character_is_made_visible() -> None:
    characters = [chr(code) for code in range(0x3000)]
    hidden = [each for each in characters if unicodedata.category(each) == "Cc" and each not in "\n\t"]
    kinds = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
    turns = [each for each in characters if unicodedata.bidirectional(each) in kinds]
    assert len(hidden) == 63
    assert len(turns) == 9
    for character in (*hidden, *turns, "\u200e", "\u200f", "\u061c", "\ud800", "\udfff"):
        assert make_visible(character) == f"\\u{ord(character):04x}"
    assert make_visible("α − 日本\n\té \U0001f600") == "α − 日本\n\té \U0001f600"


def test_an_escape_in_json_means_the_character() -> None:
    text = json.dumps("a\x1b\x9b\u202eb\udcff", ensure_ascii=False)
    assert json.loads(make_visible(text)) == "a\x1b\x9b\u202eb\udcff"


def test_values_and_outputs_of_pages() -> None:
    class Markup(str):
        pass

    assert make_values_visible({"a\x07": ["\u202e", 1, None]}) == {"a\\u0007": ["\\u202e", 1, None]}
    assert make_output_visible("\x1b") == "\\u001b"
    assert make_output_visible(Markup("\x1b")) == "\x1b"


def test_what_is_printed_is_visible(capsys: pytest.CaptureFixture[str]) -> None:
    with print_visibly():
        print("a\x1b[31m", "\rb")
        print("\u202e", file=sys.stderr)
        sys.stdout.writelines(["\x07", "\n"])
    assert capsys.readouterr() == ("a\\u001b[31m \\u000db\n\\u0007\n", "\\u202e\n")
    print("\x07")
    assert capsys.readouterr().out == "\x07\n"


def test_a_bar_of_another_library_is_redrawn_in_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    with print_visibly():
        for share in ("10 %", "\x1b20 %"):
            sys.stderr.write(f"\r{share}")
        sys.stderr.write("\n")
        print("\x1b[K", end="", file=get_unfiltered_stream(sys.stderr))
    assert capsys.readouterr().err == "\r10 %\r\\u001b20 %\n\x1b[K"


def test_a_stream_without_a_filter_is_itself() -> None:
    stream = io.StringIO()
    assert get_unfiltered_stream(stream) is stream
