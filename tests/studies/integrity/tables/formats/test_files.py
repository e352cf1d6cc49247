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
    # The line of a value says in which of the files it is.
    assert [line for line, _ in table.rows][1:3] == ["line 3 of 'base'", "line 2 of 'new'"]
    assert table.locate("line 3 of 'base'") == "line 3 of 'base'"


def test_a_wrong_value_of_several_files_is_named_with_its_file(tmp_path: Path) -> None:
    for arm in ("base", "new"):
        for seed in range(1, 6):
            score = 0.7123 if (arm, seed) == ("new", 3) else 0.5 + seed / 1000
            content = {
                "results": {"piqa": {"acc,none": score}}, "n-samples": {"piqa": {"effective": 1000}},
                "config": {"model_args": f"pretrained=out/{arm}-seed{seed}"},
            }  # fmt: skip
            folder = tmp_path / f"{arm}-seed{seed}"
            folder.mkdir()
            (folder / "results.json").write_text(json.dumps(content), encoding="utf-8")
    faults = judge(read_table(sorted(map(str, tmp_path.glob("*/results.json"))))).faults
    assert "0.7123 (acc of piqa of 'new-seed3', value) does not fit" in " ".join(fault.sentence for fault in faults)


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
