"""Checkpoints: what is written comes back, what is damaged is named, and older ones go only for proven newer ones."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from attnlab.errors import TrainingError
from attnlab.training.record.checkpoint import Checkpoint, Checkpoints
from attnlab.training.record.files import Seal
from tests.training.record.mortal import checkpoint_of, is_same

FILES = ["model.safetensors", "optimizer.safetensors", "state.json"]


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def checkpoints(tmp_path: Path, said: list[str]) -> Checkpoints:
    return Checkpoints(tmp_path / "run" / "checkpoints", said.append)


def write(checkpoints: Checkpoints, *steps: int, best_step: int | None = None) -> None:
    for step in steps:
        checkpoints.write(checkpoint_of(step), best_step=best_step)


def names(checkpoints: Checkpoints) -> list[str]:
    return sorted(path.name for path in checkpoints.folder.iterdir())


def spoil(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_a_checkpoint_comes_back(checkpoints: Checkpoints, said: list[str]) -> None:
    assert checkpoints.load_last() is None
    assert checkpoints.steps() == []
    path = checkpoints.write(checkpoint_of(50), best_step=None)
    assert path == checkpoints.folder / "step-00000050"
    assert sorted(file.name for file in path.iterdir()) == FILES
    last = checkpoints.load_last()
    assert last is not None
    assert is_same(last, checkpoint_of(50))
    assert is_same(checkpoints.load(50), checkpoint_of(50))
    assert said == []


def test_state_comes_back_to_the_bit(checkpoints: Checkpoints) -> None:
    state = {
        "floats": [0.1, -0.0, 5e-324, 1.7976931348623157e308],
        "ints": [2**200, -1, 0],
        "text": "ä\u2028\ud800\0",
        "none": None,
        "is_done": False,
        "nested": {"": [[], {}]},
    }
    checkpoints.write(Checkpoint(0, {}, {}, state), best_step=None)
    found = checkpoints.load(0)
    assert repr(found.state) == repr(state)
    assert found.model == found.optimizer == {}


def test_the_last_two_and_the_best_stay(checkpoints: Checkpoints) -> None:
    write(checkpoints, 10, 20, 30, 40, 50, best_step=20)
    assert checkpoints.steps() == [20, 40, 50]
    write(checkpoints, 60, best_step=50)
    assert checkpoints.steps() == [50, 60]
    write(checkpoints, 100_000_000)
    assert names(checkpoints) == ["step-00000060", "step-100000000"]


def test_those_ahead_stay(checkpoints: Checkpoints) -> None:
    write(checkpoints, 10, 20, 30)
    write(checkpoints, 25)
    assert checkpoints.steps() == [20, 25, 30]


def test_the_same_step_again_replaces_the_first(checkpoints: Checkpoints) -> None:
    write(checkpoints, 10, 20)
    checkpoints.write(checkpoint_of(20, shade=3), best_step=None)
    assert is_same(checkpoints.load(20), checkpoint_of(20, shade=3))
    assert names(checkpoints) == ["step-00000010", "step-00000020"]


@pytest.mark.parametrize("file", FILES)
def test_a_damaged_one_is_named_and_the_one_before_is_used(
    checkpoints: Checkpoints, said: list[str], file: str
) -> None:
    write(checkpoints, 10, 20)
    spoil(checkpoints.folder / "step-00000020" / file)
    last = checkpoints.load_last()
    assert last is not None
    assert is_same(last, checkpoint_of(10))
    assert len(said) == 1
    assert said[0].startswith(f"the checkpoint {checkpoints.folder / 'step-00000020'} is damaged: {file} is ")
    assert said[0].endswith("; trying the one before it")
    with pytest.raises(TrainingError, match=rf"step-00000020 is damaged: {file} .* use another step \(available: 10\)"):
        checkpoints.load(20)


@pytest.mark.parametrize("file", FILES)
def test_a_missing_file_is_damage(checkpoints: Checkpoints, said: list[str], file: str) -> None:
    write(checkpoints, 10, 20)
    (checkpoints.folder / "step-00000020" / file).unlink()
    assert checkpoints.load_last() is not None
    assert f"is damaged: {file} is missing" in said[0]


def test_a_folder_under_another_name_is_damage(checkpoints: Checkpoints, said: list[str]) -> None:
    write(checkpoints, 10, 20)
    (checkpoints.folder / "step-00000020").rename(checkpoints.folder / "step-00000030")
    last = checkpoints.load_last()
    assert last is not None
    assert last.step == 10
    assert "step-00000030 is damaged: state.json is that of step 20" in said[0]


def test_where_none_is_whole_the_run_does_not_start_over(checkpoints: Checkpoints, said: list[str]) -> None:
    write(checkpoints, 10, 20)
    spoil(checkpoints.folder / "step-00000010" / "model.safetensors")
    (checkpoints.folder / "step-00000020" / "state.json").write_bytes(b"")
    with pytest.raises(TrainingError) as error:
        checkpoints.load_last()
    for part in ("step-00000010: model.safetensors is not", "step-00000020: state.json is cut", "delete that folder"):
        assert part in str(error.value)
    assert len(said) == 2


def test_a_step_that_is_not_there(checkpoints: Checkpoints) -> None:
    with pytest.raises(TrainingError, match=r"no checkpoint of step 5 in .*; available: none"):
        checkpoints.load(5)
    write(checkpoints, 10, 20)
    with pytest.raises(TrainingError, match=r"no checkpoint of step 5 in .*; available: 10, 20"):
        checkpoints.load(5)


def test_a_damaged_one_does_not_count_as_the_one_before(checkpoints: Checkpoints) -> None:
    write(checkpoints, 10, 20)
    spoil(checkpoints.folder / "step-00000020" / "model.safetensors")
    assert checkpoints.load_last() is not None
    write(checkpoints, 25)
    assert checkpoints.steps() == [10, 25]


def test_writing_anew_mends_a_damaged_one(checkpoints: Checkpoints, said: list[str]) -> None:
    write(checkpoints, 10, 20)
    spoil(checkpoints.folder / "step-00000020" / "model.safetensors")
    assert checkpoints.load_last() is not None
    said.clear()
    write(checkpoints, 20, 30)
    assert checkpoints.steps() == [20, 30]
    assert is_same(checkpoints.load(20), checkpoint_of(20))
    assert said == []


def test_another_format_is_not_taken_for_damage(checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch) -> None:
    write(checkpoints, 10)
    monkeypatch.setattr("attnlab.training.record.checkpoint.FORMAT", 2)
    write(checkpoints, 20)
    monkeypatch.undo()
    with pytest.raises(TrainingError, match="step-00000020 has format 2, and this attnlab reads format 1"):
        checkpoints.load_last()


def test_leftovers_go_and_what_is_unknown_stays(checkpoints: Checkpoints) -> None:
    write(checkpoints, 10)
    ours = [".writing-step-00000020-0123abcd", ".removing-step-00000005", ".replaced-step-00000010"]
    unknown = ["step-5", "notes", ".writing-notes", ".writing-step-00000020-mine", "step-00000010.old", ".removing-"]
    unknown += ["step-00000030-0123abcd", ".writing-step-00000030", "step-0000000040"]
    for name in ours + unknown:
        (checkpoints.folder / name).mkdir()
        (checkpoints.folder / name / "file").write_text("?")
    (checkpoints.folder / "step-00000099").write_text("a file")
    assert checkpoints.steps() == [10]
    assert checkpoints.load_last() is not None
    assert set(ours) < set(names(checkpoints)), "reading changes nothing: another process may be writing"
    write(checkpoints, 20)
    assert names(checkpoints) == sorted([*unknown, "step-00000010", "step-00000020", "step-00000099"])


def test_one_that_was_being_replaced_is_found_and_put_back(checkpoints: Checkpoints) -> None:
    write(checkpoints, 10)
    (checkpoints.folder / "step-00000010").rename(checkpoints.folder / ".replaced-step-00000010")
    last = checkpoints.load_last()
    assert last is not None
    assert is_same(last, checkpoint_of(10))
    checkpoints.remove_leftovers()
    assert names(checkpoints) == ["step-00000010"]


def test_other_bytes_read_back_are_no_checkpoint(checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch) -> None:
    write(checkpoints, 10, 20)
    monkeypatch.setattr(Seal, "of", lambda path: Seal("0" * 64, 1))
    with pytest.raises(TrainingError, match=r"returned other bytes than were written to .*model\.safetensors"):
        write(checkpoints, 30)
    monkeypatch.undo()
    assert names(checkpoints) == ["step-00000010", "step-00000020"]


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"rng": {"best": float("inf")}}, r"the run's state\.rng\.best is inf"),
        ({"rng": {1: 2}}, r"the run's state\.rng has the key 1, a int"),
        ({"rng": [0, b"x"]}, r"the run's state\.rng\[1\] is a bytes"),
    ],
    ids=["infinite", "key", "bytes"],
)
def test_a_state_that_is_not_json(checkpoints: Checkpoints, state: dict[str, object], message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        checkpoints.write(Checkpoint(1, {}, {}, state), best_step=None)
    assert names(checkpoints) == []


def cut_at(share: float) -> Callable[[bytes], bytes]:
    return lambda content: content[: int(share * len(content))]


def flip(share: float, bits: int) -> Callable[[bytes], bytes]:
    def change(content: bytes) -> bytes:
        place = int(share * len(content))
        return content[:place] + bytes([content[place] ^ bits]) + content[place + 1 :]

    return change


SHARES = st.floats(0, 1, exclude_max=True)
CHANGES = st.one_of(st.builds(cut_at, SHARES), st.builds(flip, SHARES, st.integers(1, 255)))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(file=st.sampled_from(FILES), change=CHANGES, extra=st.binary(max_size=3))
def test_no_change_of_any_file_goes_unnoticed(
    checkpoints: Checkpoints, said: list[str], file: str, change: Callable[[bytes], bytes], extra: bytes
) -> None:
    said.clear()
    if not checkpoints.steps():
        write(checkpoints, 10, 20)
    path = checkpoints.folder / "step-00000020" / file
    whole = path.read_bytes()
    changed = change(whole) + extra
    assume(changed != whole)
    path.write_bytes(changed)
    last = checkpoints.load_last()
    path.write_bytes(whole)
    assert last is not None
    assert is_same(last, checkpoint_of(10))
    assert len(said) == 1
    assert f"step-00000020 is damaged: {file} " in said[0]


def test_every_byte_of_the_state_counts(checkpoints: Checkpoints) -> None:
    write(checkpoints, 10)
    path = checkpoints.folder / "step-00000010" / "state.json"
    whole = path.read_bytes()
    for place in range(len(whole)):
        for bits in (1, 0x20):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ bits]) + whole[place + 1 :])
            with pytest.raises(TrainingError, match=r"step-00000010 is damaged: state\.json "):
                checkpoints.load(10)
