"""Tables in every usual form are read as what they are, and the guess is shown."""

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from attnlab.errors import AttnlabError, RequestError
from attnlab.studies.integrity import judge, read_table
from tests.studies.integrity.result_tables import Recipe, make_records, write_long, write_text, write_wide


@pytest.mark.parametrize("steps", [(), (100, 200)])
def test_long_and_wide_are_the_same_table(tmp_path: Path, steps: tuple[int, ...]) -> None:
    records = make_records(Recipe(steps=steps, groups=("small", "large")))
    long, wide = (
        read_table(write_long(tmp_path / "l.csv", records)),
        read_table(write_wide(tmp_path / "w.csv", records)),
    )
    keys = [
        {(cell.arm, cell.group, cell.metric, cell.seed, cell.step, cell.value) for cell in read.cells}
        for read in (long, wide)
    ]
    assert keys[0] == keys[1]
    assert len(keys[0]) == len(records)
    assert long.baseline == wide.baseline == "baseline"


def test_rows_without_a_seed_are_runs_in_order(tmp_path: Path) -> None:
    read = read_table(write_text(tmp_path, "method,accuracy\na,1\na,2\nb,3\n"))
    assert [(cell.arm, cell.seed) for cell in read.cells] == [("a", "1"), ("a", "2"), ("b", "1")]


@pytest.mark.parametrize("word", ["", "NaN", "diverged", "-", "inf"])
def test_runs_without_a_score(tmp_path: Path, word: str) -> None:
    read = read_table(write_text(tmp_path, f"arm,seed,accuracy\na,1,0.5\na,2,{word}\nb,1,0.6\n"))
    assert [cell.value for cell in read.cells] == [0.5, None, 0.6]


def test_answers_are_scored_where_labels_are_known(tmp_path: Path) -> None:
    rows = "".join(f"{arm},1,{i},{i % 2},{i % 2 if arm == 'a' else 1}\n" for arm in "ab" for i in range(10))
    read = read_table(write_text(tmp_path, f"arm,seed,id,label,prediction\n{rows}"))
    assert [(cell.arm, cell.value) for cell in read.cells] == [("a", 1.0), ("b", 0.5)]
    assert len(read.predictions) == 2


@pytest.mark.parametrize(
    ("text", "mapping", "message"),
    [
        ("", None, "a table needs a header and at least one row"),
        ("a,b\n", None, "a table needs a header and at least one row"),
        ("one\n1\n", None, "has one column"),
        ("a,a\n1,2\n", None, "two columns named 'a'"),
        ("1,2\n3,4\n", None, "the first line must name the columns"),
        ("arm,seed,acc\na,1\n", None, "line 2 of .* has 2 cells, and the header has 3"),
        ("arm,seed,acc\na,1,0.5\na,1,0.6\n", None, "lines 2 and 3 of .* are the same run"),
        ("arm,seed,acc\na,1,high\n", "value=acc", "'acc' must hold numbers, not 'high'"),
        ("arm,seed,step,acc\na,1,last,0.5\n", None, "the step must be a number, not 'last'"),
        ("name,notes\nx,good\ny,bad\n", None, "no scores were recognised"),
        ("arm,seed,acc\na,1,0.5\n", "arm=amr", "no column 'amr', did you mean 'arm'"),
        ("arm,seed,acc\na,1,0.5\n", "arms=arm", "--map has no part 'arms', did you mean 'arm'"),
        ("arm,seed,acc\na,1,0.5\n", "arm", "--map takes PART=COLUMN"),
        ("a1,a2\n1,2\n", "columns={who}{seed}", "a pattern consists of"),
        ("a1,a2\n1,2\n", "columns=x{seed}", "fits no column"),
    ],
)
def test_what_is_no_table_is_one_clear_error(tmp_path: Path, text: str, mapping: str | None, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        read_table(write_text(tmp_path, text), mapping)


WORDS = st.sampled_from([
    "arm", "seed", "step", "metric", "value", "acc", "f1", "base", "new", "prediction", "label", "size", "tokens", "",
    "1", "2", "0.5", "-3e5", "1e300", "nan", "x_1", "base_acc_1", "new_acc_2", '"', "%", "99%", "日本", "'", "a;b",
])  # fmt: skip
NUMBERS = st.sampled_from(["1", "2", "0.5", "0.25", "70.123456789", "-3e5", "1e300", "nan", "0", "100", "1e-310"])
TABLES = st.integers(2, 5).flatmap(
    lambda width: st.tuples(
        st.lists(WORDS, min_size=width, max_size=width, unique=True),
        st.lists(st.lists(NUMBERS | WORDS, min_size=width, max_size=width), min_size=1, max_size=12),
    )
)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=TABLES, sign=st.sampled_from([",", ";", "\t"]))
def test_whatever_comes_is_judged_or_refused(
    rows: tuple[list[str], list[list[str]]], sign: str, tmp_path: Path
) -> None:
    path = write_text(tmp_path, "\n".join(sign.join(row) for row in [rows[0], *rows[1]]))
    with contextlib.suppress(AttnlabError):
        assert json.dumps(judge(read_table(path)).record(), allow_nan=False)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=200))
def test_any_bytes_are_judged_or_refused(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "any.csv"
    path.write_bytes(data)
    with contextlib.suppress(AttnlabError):
        judge(read_table(str(path)))


def test_the_first_words_of_an_arm_are_enough_for_the_baseline(tmp_path: Path) -> None:
    path = write_text(tmp_path, "model,acc\nBERT base,1\nBERT large,2\nOurs (α=0.5),3\n")
    assert read_table(path, baseline="ours").baseline == "Ours (α=0.5)"
    with pytest.raises(RequestError, match="no arm is named 'BERT'; these begin with it: BERT base, BERT large"):
        read_table(path, baseline="BERT")
