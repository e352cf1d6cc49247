"""The charts of a report: files for papers, and no arm that is not comparable in the forest."""

import re
from pathlib import Path

from attnlab.charts import svg
from attnlab.charts.theme import FILE
from attnlab.reports.study.cells import COLUMNS, choose_columns

from .made import BASE, HIGH, Made
from .reading import contents, rows


def test_an_arm_that_leaks_stands_apart_and_is_not_in_the_forest(folder: Path) -> None:
    found = contents(folder)
    (apart,) = found.headline.apart
    assert (apart.arm, apart.verdict, apart.reason) == ("leaking", "NOT COMPARABLE", "Its audit finds a leak.")
    forest = found.effects[0]
    assert "not here: leaking" in forest.caption
    assert [leak.figure.name for leak in found.leaks if leak.figure] == ["leak-leaking"]
    row = next(row for row in rows(folder / "tables" / "summary.csv") if row["arm"] == "leaking")
    assert row["is_comparable"] == "False"


def test_figures_are_there_for_papers(folder: Path) -> None:
    names = {path.name for path in (folder / "figures").iterdir()}
    for stem in ("forest-recall-tiny", "seeds-recall-tiny", "curves-recall-tiny-train-loss", "leak-leaking"):
        assert {f"{stem}.svg", f"{stem}.png"} <= names
    assert not [name for name in names if name.startswith(".")]
    picture = (folder / "figures" / "seeds-recall-tiny.svg").read_text(encoding="utf-8")
    assert "Dots are seeds, thin lines" in picture
    assert "the orange bar is" in " ".join(re.findall(r"<tspan[^>]*>([^<]*)<", picture))


def test_quality_is_drawn_against_each_cost_that_differs(tmp_path: Path) -> None:
    made = Made(tmp_path / "made")
    made.give("dot", BASE, costs=[{"operations": 2e12, "seconds": 3.0}] * 5)
    made.give("better", HIGH, costs=[{"operations": 1.5e12, "seconds": 2.0}] * 5)
    found = contents(made.done())
    assert [figure.name for figure in found.costs] == ["cost-recall-tiny-time", "cost-recall-tiny-operations"]
    picture = svg(found.costs[1].draw(FILE))
    assert "counted operations of a run’s updates" in picture
    assert ">1.6T<" in picture
    assert [COLUMNS["operations"](row).text for row in found.places[0].rows] == ["2 T", "1.5 T"]


def test_a_cost_that_differs_by_seed_alone_is_not_drawn(tmp_path: Path) -> None:
    made = Made(tmp_path / "made")
    for arm, values in {"dot": BASE, "better": HIGH}.items():
        made.give(arm, values, costs=[{"operations": 2e12 + seed, "seconds": 3.0} for seed in range(5)])
    assert contents(made.done()).costs == []


def test_runs_of_older_folders_have_no_operations(folder: Path) -> None:
    found = contents(folder)
    assert [figure.name for figure in found.costs] == []
    assert "operations" not in choose_columns([row for place in found.places for row in place.rows])
