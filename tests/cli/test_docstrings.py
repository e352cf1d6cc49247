"""Lists of stages and verbs show whole sentences."""

import pytest

from attnlab.cli.docstrings import read_first_sentence
from attnlab.cli.verbs import VERBS, main
from attnlab.mechanisms import REGISTRY


def test_a_first_sentence_goes_over_lines_and_abbreviations() -> None:
    def described() -> None:
        """Softmax over the channels (Shen et
        al. 2018), or, with kind=taylor, e.g. The features of e^s. A second sentence.

        More.
        """

    assert read_first_sentence(described) == (
        "Softmax over the channels (Shen et al. 2018), or, with kind=taylor, e.g. The features of e^s."
    )


@pytest.mark.parametrize(("arguments", "described"), [(["--help"], VERBS), (["mechanisms", "--stages"], REGISTRY)])
def test_no_description_is_cut(
    arguments: list[str], described: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 0
    words = "".join(capsys.readouterr().out.split())
    for item in described.values():
        sentence = read_first_sentence(item)
        assert sentence.endswith((".", "…"))
        assert "".join(sentence.split()) in words
