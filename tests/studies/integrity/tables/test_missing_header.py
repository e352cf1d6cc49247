"""A table without a header is refused, and numbers that name columns are not taken for scores."""

from pathlib import Path

import pytest

from attnlab.errors import RequestError
from attnlab.studies.integrity import read_table
from tests.studies.integrity.result_tables import write_text


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("base,82.1,81.8,82.3\nours,83.3,82.9,83.6\n", "arm,s1,s2,s3"),
        ("base,82.1,81.8,82.1\nours,83.3,82.9,83.6\n", "arm,s1,s2,s3"),
        ("full,93.5\nno gating,93.1\nno norm,92.6\n", "arm,accuracy"),
        ("base,1,82.1\nbase,2,81.8\nours,1,83.3\nours,2,82.9\n", "arm,seed,accuracy"),
        ("base,MNLI,0.821\nours,MNLI,0.833\n", "arm,task,accuracy"),
        ("base,82.1 ± 0.2,90.1 ± 0.3\nours,83.3 ± 0.2,91.2 ± 0.2\n", "arm,s1,s2"),
        ("base,24.2,3.41\nours,20.1,3.32\n", "arm,s1,s2"),
        ("| base | 82.1 | 81.8 |\n|--|--|--|\n| ours | 83.3 | 82.9 |\n", "arm,s1,s2"),
        ("\\begin{tabular}{lc}\nFull & 93.5 \\\\\nw/o norm & 92.6 ($-$0.9) \\\\\n\\end{tabular}\n", "arm,accuracy"),
    ],
)
def test_a_first_row_of_scores_is_refused(text: str, names: str, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=f"seems to have no header: its first row is .* such as {names}\\."):
        read_table(write_text(tmp_path, text))


@pytest.mark.parametrize(
    "header", ["1,2,3", "42,1337,7", "128,256,512", "0.1,0.5,0.9", "2019,2020,2021", "1%,10%,100%", "1e-4,3e-4,1e-3"]
)
@pytest.mark.parametrize("row", ["82.1,81.8,82.3", "0.421,0.518,0.523", "81,90,76", "3.41,3.32,3.30"])
def test_numbers_may_name_columns(header: str, row: str, tmp_path: Path) -> None:
    assert read_table(write_text(tmp_path, f"model,{header}\nbase,{row}\nours,{row}\n")).values


def test_a_grid_of_settings_near_the_scores_names_columns(tmp_path: Path) -> None:
    assert read_table(write_text(tmp_path, "model,0.7,0.8,0.9\nbase,0.71,0.8,0.8\nours,0.8,0.8,0.9\n")).values
