"""Values that repeat by chance are no fault."""

from pathlib import Path

from tests.studies.integrity.result_tables import (
    judge_file,
    list_faults,
)


def test_coarse_values_repeat_by_chance(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    rows = "".join(f"{arm},{seed},{0.8 + 0.02 * (seed % 3):.2f}\n" for arm in ("base", "new") for seed in range(8))
    path.write_text(f"arm,seed,accuracy\n{rows}", encoding="utf-8")
    assert "repeated values" not in list_faults(judge_file(str(path)))


def test_perfect_scores_may_repeat(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    rows = "".join(
        f"{arm},{seed},{1.0 if seed < 4 else 0.987654 - seed / 1e3}\n" for arm in ("a", "b") for seed in range(6)
    )
    path.write_text(f"arm,seed,accuracy\n{rows}", encoding="utf-8")
    assert (
        "repeated values" not in list_faults(judge_file(str(path)))
        or "1.0" not in judge_file(str(path)).findings[0].sentence
    )
