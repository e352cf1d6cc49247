"""A histogram draws every bar that has something in it, and words that do not cover each other."""

from pathlib import Path

from attnlab import charts
from attnlab.charts import histogram
from attnlab.charts.axis import Axis

TITLES = ("A title", "a subtitle", "across", "up")


def test_bars_stand_between_their_edges() -> None:
    spec = histogram.draw([1, 2, 4, 9], [3, 0, 5], TITLES)
    assert spec["layer"][0]["data"]["values"] == [{"from": 1, "to": 2, "count": 3}, {"from": 4, "to": 9, "count": 5}]
    assert len(spec["layer"]) == 1


def test_marks_close_to_each_other_stand_at_different_heights() -> None:
    rows = histogram.choose_rows({"left": 10, "middle": 11, "right": 1000}, Axis(1, 2000, is_logarithmic=True))
    assert rows["left"] != rows["middle"]
    assert rows["right"] == 0


def test_ticks_are_round_and_neither_few_nor_many() -> None:
    def ticks(low: float, high: float) -> list[float]:
        values: list[float] = histogram.draw([low, high], [1], TITLES)["layer"][0]["encoding"]["x"]["axis"]["values"]
        return values

    assert ticks(1, 60) == [1, 2, 5, 10, 20, 50]
    assert ticks(3, 200_000) == [10, 100, 1000, 10_000, 100_000]


def test_it_is_drawn_with_its_words(tmp_path: Path) -> None:
    spec = histogram.draw([1, 2, 4, 9], [3, 1, 5], TITLES, {"median": 3})
    drawn = charts.save(spec, tmp_path / "a.svg").read_text(encoding="utf-8")
    for words in ("A title", "a subtitle", "across", "up", "median 3"):
        assert f">{words}<" in drawn


def test_one_size_alone_is_drawn_too(tmp_path: Path) -> None:
    charts.save(histogram.draw([1, 2], [3], TITLES, {"median": 1}), tmp_path / "a.png")
