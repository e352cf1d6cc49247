"""The metrics of a run in progress: whole lines only, each once, whatever happens to the file."""

from pathlib import Path

import pytest

from attnlab.studies.answers.run_tail import NUM_POINTS, Tail

from ..moments import evaluation, update, write


def test_a_line_is_read_when_it_is_whole(tmp_path: Path) -> None:
    tail = Tail(tmp_path)
    tail.read()
    assert (tail.step, tail.loss, tail.pace) == (0, None, None)
    line = update(20, 2.0, 3.0)
    write(tmp_path, update(10, 3.0, 1.0, 0.0) + line[:17])
    tail.read()
    assert (tail.step, tail.loss, tail.tokens_per_second) == (10, 3.0, None)
    write(tmp_path, line[17:] + evaluation(20, 0.5))
    tail.read()
    assert (tail.step, tail.loss, tail.tokens_per_second, tail.pace) == (20, 2.0, 1000.0, 0.2)
    assert tail.evaluation == (20, "accuracy", 0.5)
    assert tail.curve == [(10, 3.0), (20, 2.0)]


def test_evaluations_are_a_curve_that_is_thinned_and_ends_at_the_newest(tmp_path: Path) -> None:
    tail = Tail(tmp_path)
    write(tmp_path, evaluation(10, 0.25) + evaluation(20, float("nan")) + evaluation(30, 0.5))
    tail.read()
    assert tail.held_out == [(10, 0.25), (30, 0.5)]
    write(tmp_path, "".join(evaluation(step, 1.0) for step in range(31, 1031)))
    tail.read()
    assert len(tail.held_out) <= 2 * NUM_POINTS
    assert tail.held_out[-1] == (1030, 1.0)


def test_a_torn_line_that_was_cut_off_does_not_shift_what_follows(tmp_path: Path) -> None:
    tail = Tail(tmp_path)
    write(tmp_path, update(10, 3.0, 1.0) + '{"kind": "tra')
    tail.read()
    (tmp_path / "metrics.jsonl").write_text(update(10, 3.0, 1.0) + update(20, 1.0, 2.0), encoding="utf-8")
    tail.read()
    assert (tail.step, tail.loss) == (20, 1.0)


@pytest.mark.parametrize(
    "line", ["[]\n", "null\n", "{}\n", '{"kind": "train", "step": "x"}\n', "\n", '{"kind": "train", "step": 9}\n'],
    ids=["list", "null", "empty", "word", "blank", "lossless"],
)  # fmt: skip
def test_a_line_that_is_broken_is_passed_over(tmp_path: Path, line: str) -> None:
    tail = Tail(tmp_path)
    write(tmp_path, line + update(10, 3.0, 1.0))
    tail.read()
    assert (tail.step, tail.loss) == (10, 3.0)


def test_a_file_that_began_anew_is_read_anew(tmp_path: Path) -> None:
    tail = Tail(tmp_path)
    write(tmp_path, update(10, 3.0, 1.0) + update(20, 2.0, 2.0))
    tail.read()
    (tmp_path / "metrics.jsonl").unlink()
    write(tmp_path, update(10, 5.0, 1.0))
    tail.read()
    assert (tail.step, tail.curve) == (10, [(10, 5.0)])


def test_a_long_curve_is_thinned_and_ends_where_the_run_is(tmp_path: Path) -> None:
    tail = Tail(tmp_path)
    write(tmp_path, "".join(update(step, 1 / step, step) for step in range(1, 10_000)))
    tail.read()
    assert NUM_POINTS <= len(tail.curve) <= 2 * NUM_POINTS + 1
    assert (tail.curve[0], tail.curve[-1]) == ((1, 1.0), (9_999, 1 / 9_999))


def test_a_loss_that_is_no_number_is_no_point(tmp_path: Path) -> None:
    tail = Tail(tmp_path)
    write(tmp_path, update(10, 3.0, 1.0) + update(20, "NaN", 2.0))
    tail.read()
    assert tail.curve == [(10, 3.0)]
    assert tail.loss is not None
    assert tail.loss != tail.loss
