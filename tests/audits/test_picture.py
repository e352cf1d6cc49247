"""The picture of an audit."""

import dataclasses

import pytest

import attnlab
from attnlab.audits import Findings
from attnlab.errors import RequestError


def test_the_picture_shows_leaks_in_their_own_colour() -> None:
    leaking = attnlab.audit("leaking-mask", causal=True, checks=["leak"])
    sound = dataclasses.replace(leaking.findings["leak"], data={"map": [[1.0, 0.0], [1.0, 1.0]]})
    growing = attnlab.audit("baseline", causal=False, checks=["magnitude"])
    both = dataclasses.replace(leaking, findings=Findings([sound, growing.findings["magnitude"]]))
    specs = leaking.figure(), both.figure()
    kinds = [{value["whose"] for value in spec["concat"][0]["data"]["values"]} for spec in specs]
    assert kinds == [{"allowed", "later token: a leak"}, {"allowed"}]
    assert len(both.figure()["concat"]) == 2
    assert len(growing.figure()["concat"]) == 1
    assert attnlab.charts.svg(leaking.figure()).startswith("<svg")
    with pytest.raises(RequestError, match="this audit has none of them"):
        dataclasses.replace(leaking, findings=Findings([])).figure()
