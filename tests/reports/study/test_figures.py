"""The charts of a report: files for papers, and no arm that is not comparable in the forest."""

from pathlib import Path

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
