"""The results of each arm: values that are not finite are missing, and counted."""

import json
from pathlib import Path
from typing import Any

import pytest

from attnlab.reports.study.page import render_page

from .made import BASE, HIGH, Made, history
from .reading import Elements, contents


@pytest.mark.parametrize("odd", ["NaN", "-Infinity", 1e300])
def test_figures_that_are_no_numbers_are_left_out_and_counted(odd: Any, tmp_path: Path) -> None:
    made = Made(tmp_path)
    lines = history()
    lines[0]["loss"] = lines[1]["accuracy"] = odd
    lines[2]["h.0.attn.entropy"] = [odd, odd]
    made.give("dot", BASE, metrics=lines)
    made.give("better", [*HIGH[:4], "NaN"], metrics=history())
    text = render_page(contents(made.done()))
    found = contents(tmp_path)
    row = found.places[0].rows[1]
    assert (row.summary.n, row.values[5]) == (4, None)
    assert "NaN" not in json.dumps([json.loads(spec) for kind, spec in Elements(text).scripts if kind])
