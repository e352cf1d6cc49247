"""Options that several verbs share are the same everywhere."""

import pytest

from attnlab.cli import main
from attnlab.cli.verbs import VERBS


@pytest.mark.parametrize("verb", [verb for verb, function in VERBS.items() if "as_json" in function.__annotations__])
def test_json_is_an_option_of_every_verb_that_prints_results(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, "--help"]) == 0
    assert "--json" in capsys.readouterr().out
