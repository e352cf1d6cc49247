"""Files are recognised by their content; a file with several tables asks which one."""

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from attnlab.errors import AttnlabError, RequestError
from attnlab.studies.integrity import judge, read_table
from attnlab.studies.integrity.tables.formats.files import read_file, read_files

TWO = "| a | acc |\n|--|--|\n| x | 1 |\n\n| b | acc |\n|--|--|\n| y | 2 |\n"


def test_one_of_several_tables(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text(TWO, encoding="utf-8")
    with pytest.raises(RequestError, match=r"has 2 tables: 1 \(line 1\), 2 \(line 5\); choose one with --map table=1"):
        read_file(str(path))
    assert read_file(str(path), 2).header == ("b", "acc")
    with pytest.raises(RequestError, match=r"table=3: .* has 2 tables"):
        read_file(str(path), 3)


def test_several_files_are_one_table(tmp_path: Path) -> None:
    for name in ("base", "new"):
        (tmp_path / f"{name}.csv").write_text("seed,acc\n1,0.5\n2,0.6\n", encoding="utf-8")
    table = read_files([str(tmp_path / "base.csv"), str(tmp_path / "new.csv")])
    assert table.name == "base, new"
    assert table.column("arm") == ["base", "base", "new", "new"]
    assert table.remarks == ("arm from the names of the files",)


TOKENS = st.sampled_from([
    r"\begin{tabular}{lc}", r"\end{tabular}", "&", r"\\", r"\hline", r"\midrule", r"\multicolumn{2}{c}{x}", "{", "}",
    "$", r"\multirow{2}{*}{y}", r"82.1_{\pm 0.4}", r"\textbf{", "82.1 ± 0.4", "base", "acc", "s1", "seed", "|",
    "|--|--|", "\n", "\n", ",", ",", "Name,State,acc\n", "Step,a - x,a - x__MIN\n", "metrics.acc,params.seed\n", "1",
    "0.5", "%", '{"results": {', '"piqa": {"acc,none": 0.5}}', ', "config": {}}', "[", "]", '"a": [1, 2]', "n_seeds",
    "acc_std", "5", ": 1", "null",
])  # fmt: skip


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tokens=st.lists(TOKENS, min_size=3, max_size=40))
def test_pieces_of_every_format_are_judged_or_refused(tokens: list[str], tmp_path: Path) -> None:
    path = tmp_path / "pieces.txt"
    path.write_text("".join(tokens), encoding="utf-8")
    with contextlib.suppress(AttnlabError):
        assert json.dumps(judge(read_table(str(path))).record(), allow_nan=False)
