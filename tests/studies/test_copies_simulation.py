"""Simulated tables: clean ones raise no alarm, and a copied arm is found at two decimals."""

import pytest

from attnlab.statistics.simulation import Case, measure
from attnlab.studies.copies_simulation import list_cases


@pytest.mark.parametrize("case", [*list_cases()], ids=lambda case: case.what)
def test_clean_tables_raise_no_alarm(case: Case) -> None:
    assert measure(case, 40, with_power=False).share == 0


def test_a_copied_arm_is_found() -> None:
    rate = measure(next(list_cases()), 80)
    assert rate.power is not None
    assert rate.power > 0.5
