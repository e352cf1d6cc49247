"""Costs and p-values are no metrics, unless they are named as such."""

from pathlib import Path

import pytest

from attnlab.studies.integrity import read_table
from attnlab.studies.integrity.tables.column_names import is_cost, is_p_value
from tests.studies.integrity.result_tables import write_text


@pytest.mark.parametrize(
    "name", ["p", "p-value", "P value", "pval", "sig.", "p-value (t-test)", "adj. p", "Adjusted p"]
)
def test_names_of_p_values(name: str) -> None:
    assert is_p_value(name)


@pytest.mark.parametrize("name", ["mAP", "top-p", "p1", "ppl", "ours p"])
def test_other_names_are_no_p_values(name: str) -> None:
    assert not is_p_value(name)


@pytest.mark.parametrize("name", ["GFLOPs", "Throughput (img/s)", "tokens/s", "latency (ms)", "memory (GB)", "#Params"])
def test_a_cost_is_compared_only_if_it_is_named(name: str, tmp_path: Path) -> None:
    assert is_cost(name)
    path = write_text(
        tmp_path, f"| model | top-1 | {name} |\n|--|--|--|\n| base | 79.8 | 4.6 |\n| ours | 80.6 | 4.7 |\n"
    )
    assert read_table(path).metrics == ["top-1"]
    assert any(words.startswith("not used") and name in words for words in read_table(path).layout)
    assert read_table(path, f"value=top-1+{name}").metrics == ["top-1", name]


@pytest.mark.parametrize("mapping", [None, "columns={arm}", "columns={arm},value=Baseline+Ours"])
def test_a_p_value_beside_arms_is_left_out(mapping: str | None, tmp_path: Path) -> None:
    text = "| Dataset | Baseline | Ours | Δ | p-value |\n|--|--|--|--|--|\n"
    text += "| MNLI | 84.1 ± 0.2 | 84.9 ± 0.2 | +0.8 | <0.001 |\n| QQP | 90.9 ± 0.1 | 91.0 ± 0.1 | +0.1 | 0.15 |\n"
    read = read_table(write_text(tmp_path, text), mapping)
    assert (read.arms, read.groups) == (["Baseline", "Ours"], ["MNLI", "QQP"])
    assert "not used, as p-values: 'p-value'" in read.layout
