"""Datasets of the hub, and the error without a network."""

from __future__ import annotations

import pytest

from attnlab.data import open_source
from attnlab.data.sources.hub import parse_name
from attnlab.errors import DataError


def test_without_a_network_the_hub_says_which_file_to_give(unreachable_hub: list[bytes]) -> None:
    message = r"cannot download hf:squad .* cannot be reached .* use a file: a SQuAD \.json"
    with pytest.raises(DataError, match=message) as caught:
        list(open_source("hf:squad", split="train").rows())
    assert "\n" not in str(caught.value)
    assert len(unreachable_hub) == 1


def test_a_name_of_the_hub_may_have_an_owner_and_a_config() -> None:
    assert parse_name("squad") == [("squad", None)]
    assert parse_name("glue/cola") == [("glue/cola", None), ("glue", "cola")]
    assert parse_name("nyu-mll/glue/cola") == [("nyu-mll/glue", "cola")]


def test_rows_of_the_hub_come_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    def load(name: str, config: str | None, split: str | None) -> object:
        if (name, config) != ("glue", "cola"):
            raise datasets.exceptions.DatasetNotFoundError(name)
        made = datasets.Dataset.from_dict({"sentence": ["a", "b"], "label": [0, 1]})
        return made if split else datasets.DatasetDict({"train": made, "test": made})

    monkeypatch.setattr(datasets, "load_dataset", load)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    source = open_source("hf:glue/cola", split="train")
    assert list(source.rows()) == [{"sentence": "a", "label": 0}, {"sentence": "b", "label": 1}]
    assert list(source.documents()) == ["a", "b"]
    assert len(source.hash) == 64
    with pytest.raises(DataError, match="has several splits; give split= one of train, test"):
        list(open_source("hf:glue/cola").rows())
    with pytest.raises(DataError, match="cannot download hf:glue/nothing"):
        list(open_source("hf:glue/nothing", split="train").rows())
