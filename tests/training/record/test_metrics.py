"""metrics.jsonl: each line once, none lost, none touched, and a run that does not repeat itself is told so."""

import errno
import json
import math
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from attnlab.errors import TrainingError
from attnlab.training.record.metrics import Metrics

Opener = Callable[..., Metrics]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run" / "metrics.jsonl"


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def reopen(path: Path, said: list[str]) -> Iterator[Opener]:
    opened: list[Metrics] = []

    def again(after: int = -1) -> Metrics:
        for metrics in opened:
            metrics.close()
        opened.append(Metrics(path, said.append, after=after))
        return opened[-1]

    yield again
    for metrics in opened:
        metrics.close()


def write_steps(metrics: Metrics, *steps: int, seconds: float = 1.0) -> None:
    for step in steps:
        metrics.write("train", step, {"loss": 1 / step, "norms": [0.5, step]}, {"seconds": seconds})
        if step % 2 == 0:
            metrics.write("eval", step, {"name": "squad", "f1": 80 + step})
            metrics.write("eval", step, {"name": "boolq", "accuracy": 0.5})


def test_a_line_is_one_write(reopen: Opener, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writes, real = [], os.write

    def write(descriptor: int, content: memoryview) -> int:
        writes.append(real(descriptor, content))
        return writes[-1]

    metrics = reopen()
    monkeypatch.setattr(os, "write", write)
    metrics.write("train", 57, {"loss": 0.1}, {"seconds": 2.5})
    metrics.write("eval", 57, {"name": "squad", "f1": 80})
    metrics.sync()
    lines = path.read_bytes().splitlines(keepends=True)
    assert lines[0] == b'{"kind": "train", "step": 57, "loss": 0.1, "seconds": 2.5}\n'
    assert lines[1] == b'{"kind": "eval", "step": 57, "name": "squad", "f1": 80}\n'
    assert writes == [len(line) for line in lines]


def test_what_json_lacks_comes_back(reopen: Opener, path: Path) -> None:
    values = {"loss": math.nan, "norms": [math.inf, -math.inf, 1.0], "deep": {"x": math.nan}, "text": "ä\u2028\n"}
    reopen().write("train", 1, {**values, "name": "NaN"}, {"rate": math.inf})
    strict = json.loads(path.read_text(), parse_constant=lambda constant: pytest.fail(constant))
    assert (strict["loss"], strict["norms"]) == ("NaN", ["Infinity", "-Infinity", 1.0])
    assert repr(Metrics.read(path)) == repr([{"kind": "train", "step": 1, **values, "name": "NaN", "rate": math.inf}])


@given(value=st.floats(allow_subnormal=True))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_floats_come_back_and_compare_to_the_bit(reopen: Opener, path: Path, said: list[str], value: float) -> None:
    path.unlink(missing_ok=True)
    reopen().write("train", 1, {"loss": value})
    reopen().write("train", 1, {"loss": value})
    assert said == []
    assert repr(Metrics.read(path)[0]["loss"]) == repr(value)


def test_lines_computed_again_are_not_written_again(reopen: Opener, path: Path, said: list[str]) -> None:
    write_steps(reopen(), *range(1, 9))
    before = path.read_bytes()
    write_steps(reopen(after=4), *range(5, 13), seconds=9.0)
    after = path.read_bytes()
    assert after.startswith(before)
    assert said == []
    lines = Metrics.read(path)
    assert [line["step"] for line in lines if line["kind"] == "train"] == list(range(1, 13))
    assert len(lines) == 12 + 2 * 6


def test_a_line_is_not_doubled_whatever_its_step(reopen: Opener, path: Path, said: list[str]) -> None:
    write_steps(reopen(), *range(1, 9))
    metrics = reopen(after=6)
    before = path.read_bytes()
    write_steps(metrics, 2, 6, 8, 1)
    assert path.read_bytes() == before
    write_steps(metrics, 9, 10, 9, 10, 12, 10, 3)
    write_steps(metrics, 11)
    lines = Metrics.read(path)
    assert sorted(line["step"] for line in lines if line["kind"] == "train") == list(range(1, 13))
    assert len({(line["kind"], line["step"], line.get("name")) for line in lines}) == len(lines)
    assert said == []


@pytest.mark.parametrize(
    ("recorded", "now", "texts"),
    [
        (0.1, math.nextafter(0.1, 1), ("0.1", "0.10000000000000002")),
        (0.0, -0.0, ("0.0", "-0.0")),
        (1.0, math.nan, ("1.0", '"NaN"')),
        (1, 1.0, ("1", "1.0")),
        ([1.0, 2.0], [1.0, 3.0], ("[1.0, 2.0]", "[1.0, 3.0]")),
    ],
    ids=["last bit", "sign of zero", "nan", "int", "list"],
)
def test_a_run_that_does_not_repeat_itself_is_told_once(
    reopen: Opener, path: Path, said: list[str], recorded: Any, now: Any, texts: tuple[str, str]
) -> None:
    metrics = reopen()
    for step in (57, 58):
        metrics.write("train", step, {"lr": 0.5, "loss": recorded})
    before = path.read_bytes()
    metrics = reopen(after=50)
    for step in (57, 58):
        metrics.write("train", step, {"lr": 0.5, "loss": now})
    assert path.read_bytes() == before
    assert len(said) == 1
    assert said[0].startswith(
        f"this run is not reproduced exactly: from step 57 on, first in train loss, {texts[0]} in {path} and "
        f"{texts[1]} now."
    )


@pytest.mark.parametrize(
    ("recorded", "now", "text"),
    [({"a": 1}, {"a": 1, "b": 2}, "b, nothing in"), ({"a": 1, "b": 2}, {"a": 1}, "2 in .* and nothing now")],
    ids=["more", "less"],
)
def test_other_names_are_a_difference(
    reopen: Opener, said: list[str], recorded: dict[str, int], now: dict[str, int], text: str
) -> None:
    reopen().write("train", 1, recorded, {"seconds": 1.0})
    reopen().write("train", 1, now, {"seconds": 2.0})
    assert len(said) == 1
    assert re.search(text, said[0])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(share=st.floats(0, 1), tail=st.sampled_from([b"", b"\0" * 50, b"\xff", b'{"kind": "tr\n']))
def test_a_torn_last_line_is_cut_and_written_again(
    reopen: Opener, path: Path, said: list[str], share: float, tail: bytes
) -> None:
    path.unlink(missing_ok=True)
    said.clear()
    write_steps(reopen(), 1, 2, 3, 4)
    whole = path.read_bytes()
    kept = whole[: int(share * len(whole))]
    path.write_bytes(kept + tail)
    complete = kept[: kept.rfind(b"\n") + 1]
    metrics = reopen()
    assert path.read_bytes() == complete
    assert len(said) == (complete != kept + tail)
    assert all("off the end of" in message for message in said)
    write_steps(metrics, 1, 2, 3, 4)
    assert path.read_bytes() == whole
    assert len(said) <= 1


@pytest.mark.parametrize(
    "broken",
    ["{torn", "", "\0\0\0", '{"kind": "train", "step": 1, "loss": NaN}', "[1]", '{"step": 1}', '{"kind": "train"}'],
    ids=["torn", "empty", "zeros", "nan", "list", "no kind", "no step"],
)
def test_a_broken_line_in_the_middle_is_an_error(reopen: Opener, path: Path, broken: str) -> None:
    write_steps(reopen(), 1, 3)
    first, second = path.read_text().splitlines()
    content = f"{first}\n{broken}\n{second}\n"
    path.write_text(content)
    for call in (reopen, lambda: Metrics.read(path)):
        with pytest.raises(TrainingError, match=f"line 2 of {path} is not a line of metrics: .* from a copy"):
            call()
    assert path.read_text() == content


def test_a_whole_last_line_of_another_kind_is_not_cut(reopen: Opener, path: Path) -> None:
    write_steps(reopen(), 1)
    with path.open("a") as file:
        file.write('{"note": "mine"}\n')
    with pytest.raises(TrainingError, match="line 2 of"):
        reopen()
    assert path.read_text().endswith('{"note": "mine"}\n')


def test_reading_leaves_a_torn_line_where_it_is(reopen: Opener, path: Path) -> None:
    write_steps(reopen(), 1)
    with path.open("a") as file:
        file.write('{"kind": "train", "st')
    before = path.read_bytes()
    assert [line["step"] for line in Metrics.read(path)] == [1]
    assert path.read_bytes() == before


def test_a_full_disk_leaves_no_half_line(reopen: Opener, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, room = os.write, 10

    def write(descriptor: int, content: memoryview) -> int:
        nonlocal room
        if room == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        room -= (written := real(descriptor, content[:room]))
        return written

    metrics = reopen()
    write_steps(metrics, 1)
    before = path.read_bytes()
    monkeypatch.setattr(os, "write", write)
    with pytest.raises(TrainingError, match=r"cannot write .*metrics.jsonl: the disk is full"):
        write_steps(metrics, 3)
    monkeypatch.undo()
    assert path.read_bytes() == before
    write_steps(metrics, 3)
    assert [line["step"] for line in Metrics.read(path)] == [1, 3]


def test_a_sync_that_fails_is_an_error(reopen: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    metrics = reopen()
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(TrainingError, match="input/output errors; copy what matters"):
        metrics.sync()


def test_a_value_that_is_no_number(reopen: Opener, path: Path) -> None:
    with pytest.raises(TrainingError, match=r"the metrics of step 7\.loss is a Tensor; JSON takes numbers"):
        reopen().write("train", 7, {"loss": torch.tensor(1.0)})
    assert path.read_bytes() == b""


def test_a_file_that_is_not_there_or_is_a_folder(path: Path, reopen: Opener) -> None:
    with pytest.raises(TrainingError, match=r"there is no .*metrics.jsonl; is .*run the folder of a run\?"):
        Metrics.read(path)
    path.mkdir(parents=True)
    with pytest.raises(TrainingError, match="there is a folder where a file is needed"):
        reopen()
    with pytest.raises(TrainingError, match="there is a folder where a file is needed"):
        Metrics.read(path)


def test_closing_twice_is_nothing(reopen: Opener) -> None:
    metrics = reopen()
    metrics.close()
    metrics.close()
