"""Addresses of settings, with and without a phase."""

from __future__ import annotations

import pytest

from attnlab.studies.file.addresses import report_unknown, split_address


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("optimizer.lr", (None, "optimizer.lr")),
        ("phases.squad.clip", ("squad", "clip")),
        ("phases.v1.0.optimizer.lr", ("v1.0", "optimizer.lr")),
        ("phases.other.clip", ("other", "clip")),
    ],
)
def test_an_address_names_a_phase_or_none(where: str, expected: tuple[str | None, str]) -> None:
    assert split_address(where, ["squad", "v1", "v1.0"]) == expected


def test_an_unknown_name_has_a_closest_one() -> None:
    assert "squad" in report_unknown("no phase", "sqaud", ["squad", "mlm"])
