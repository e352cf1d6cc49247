"""A spread in another unit than its mean is reported and not used, until the user says what it is."""

from pathlib import Path

import pytest

from attnlab.studies.integrity import IntegrityKind, Judgement, JudgeOptions, TableHints, judge, read_table
from tests.studies.integrity.result_tables import get_comparison, get_only_row, write_text


def judge_means(tmp_path: Path, text: str, units: str | None = None) -> Judgement:
    table = read_table(write_text(tmp_path, text), hints=TableHints(num_seeds=5))
    return judge(table, JudgeOptions(units=units))


def list_unit_faults(found: Judgement) -> list[str]:
    return [it.sentence for it in found.faults if it.kind == IntegrityKind.MIXED_UNITS]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("method,acc,acc_std\nbase,71.2%,0.004\nours,72.5%,0.005\n", "a fraction beside a mean in percent"),
        ("method,acc\nbase,71.2 ± 0.004\nours,72.5 ± 0.005\n", "a fraction beside a mean in percent"),
        ("method,acc,acc_std\nbase,71.23456,0.00412345\nours,72.53217,0.00512345\n", "a fraction beside"),
        ("method,MNLI\nbase,71.2 ± 0.004\nours,72.5 ± 0.005\n", "a fraction beside"),
        ("method,acc\nbase,0.712 ± 0.4\nours,0.725 ± 0.5\n", "in percent beside a mean that is a fraction"),
        ("method,f1\nbase,0.912 ± 1.24\nours,0.925 ± 0.95\n", "in percent beside"),
    ],
)
def test_a_spread_in_another_unit_is_a_fault_and_nothing_is_compared(tmp_path: Path, text: str, what: str) -> None:
    found = judge_means(tmp_path, text)
    (sentence,) = list_unit_faults(found)
    assert what in sentence
    assert "in another unit than its mean" in get_only_row(found).verdict


@pytest.mark.parametrize(
    ("text", "units", "sd"),
    [
        ("method,acc\nbase,71.2 ± 0.004\nours,72.5 ± 0.005\n", "convert", 0.5),
        ("method,acc\nbase,71.2 ± 0.004\nours,72.5 ± 0.005\n", "percent", 0.005),
        ("method,acc\nbase,0.712 ± 0.4\nours,0.725 ± 0.5\n", "convert", 0.005),
        ("method,acc\nbase,0.712 ± 0.4\nours,0.725 ± 0.43\n", "fraction", 0.43),
    ],
)
def test_the_user_says_what_it_is(tmp_path: Path, text: str, units: str, sd: float) -> None:
    found = judge_means(tmp_path, text, units)
    assert not list_unit_faults(found)
    assert get_comparison(get_only_row(found)).data.variant.sd == pytest.approx(sd)
    assert not any("not used" in words for words in found.units)


@pytest.mark.parametrize(
    "text",
    [
        "method,acc\nbase,71.2 ± 0.4\nours,72.5 ± 0.05\n",
        "method,acc\nbase,71.2% ± 0.4%\nours,72.5% ± 0.5%\n",
        "method,acc\nbase,99.98 ± 0.01\nours,99.97 ± 0.02\n",
        "method,acc\nbase,0.712 ± 0.004\nours,0.725 ± 0.27\n",
        "method,acc\nbase,0.51 ± 0.25\nours,0.75 ± 0.27\n",
        "method,loss\nbase,0.712 ± 0.4\nours,2.123 ± 0.004\n",
        "method,acc\nbase,71.2 ± 0\nours,72.5 ± 0.0\n",
        "method,ppl\nbase,21.2 ± 0.004\nours,20.5 ± 0.005\n",
    ],
)
def test_plausible_spreads_are_not_reported(tmp_path: Path, text: str) -> None:
    assert not list_unit_faults(judge_means(tmp_path, text))
