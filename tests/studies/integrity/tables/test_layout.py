"""Tables of every usual form are read as what they are, and the reading is stated with the --map that gives it."""

from pathlib import Path

import pytest

from attnlab.errors import RequestError
from attnlab.studies.integrity import TableHints, judge, read_table
from tests.studies.integrity.result_tables import write_text
from tests.studies.integrity.tables.table_corpus import CORPUS, SampleTable


@pytest.mark.parametrize("sample", CORPUS, ids=lambda sample: sample.file or "several files")
def test_a_table_is_read_as_what_it_is(sample: SampleTable, tmp_path: Path) -> None:
    table = read_table(sample.write(tmp_path))
    assert (table.arms, table.metrics, table.groups) == ([*sample.arms], [*sample.metrics], [*sample.groups])
    assert len({cell.seed for cell in table.cells}) == sample.num_seeds
    assert len(table.values) == sample.num_values
    for words in sample.words:
        assert words in "; ".join(table.layout)
    judgement = judge(table)
    assert any(analysis.rows for analysis in judgement.analyses)


@pytest.mark.parametrize("sample", CORPUS, ids=lambda sample: sample.file or "several files")
def test_the_map_that_is_shown_gives_the_same_reading(sample: SampleTable, tmp_path: Path) -> None:
    paths = sample.write(tmp_path)
    table = read_table(paths)
    again = read_table(paths, table.mapping)
    first, second = (
        {(cell.arm, cell.group, cell.seed, cell.step, cell.value, cell.sd) for cell in read.cells}
        for read in (table, again)
    )
    assert first == second


@pytest.mark.parametrize(
    ("text", "mapping", "message"),
    [
        (
            "backbone,pool,acc\nbert,mean,1\nbert,cls,2\ngpt2,mean,3\ngpt2,cls,4\n",
            None,
            "which column of .* names the arms: 'backbone' .* or 'pool' .*--map arm=backbone or --map arm=pool",
        ),
        (
            "model,lr,seed,acc\na,1,1,80\na,2,1,81\nb,1,1,82\nb,2,1,83\n",
            None,
            "they differ in 'lr' .1, 2.. Give --map group=lr .* --map arm=model.lr",
        ),
        ("model,s1,s2\na,1,2\nb,3,4\n", "columns=run{seed}", "fits no column"),
        ("model,s1,s2\na,1,2\nb,3,4\n", "arm=modle", "no column 'modle', did you mean 'model'"),
        ("model,s1,s2\na,1,2\nb,3,4\n", "group=model+x", "no column 'x'"),
        (
            "model,acc\na,82.1 ± 0.4\nb,82.1 [81.7 82.5]\n",
            "value=acc",
            "'acc' must hold numbers, not '82.1 .81.7 82.5.'",
        ),
        ("model,acc_mean,acc_std\na,82,-1\nb,82,1\n", None, "'acc_std' must hold a standard deviation, not '-1'"),
        (
            "model,acc,n_seeds\na,82 ± 1,5\nb,82 ± 1,5.5\n",
            "num_seeds=n_seeds",
            "must hold a number of seeds, not '5.5'",
        ),
    ],
)
def test_what_is_not_clear_is_one_question(tmp_path: Path, text: str, mapping: str | None, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        read_table(write_text(tmp_path, text), mapping)


def test_several_columns_can_be_the_arm(tmp_path: Path) -> None:
    text = "model,lr,seed,acc\na,1,1,80\na,2,1,81\nb,1,1,82\n"
    assert read_table(write_text(tmp_path, text), "arm=model+lr").arms == ["a, 1", "a, 2", "b, 1"]


def test_the_metric_can_be_named(tmp_path: Path) -> None:
    table = read_table(write_text(tmp_path, "model,s1,s2\na,8,9\nb,7,6\n"), hints=TableHints(metric="perplexity"))
    assert table.metrics == ["perplexity"]
    assert "metric perplexity (from --metric)" in table.layout
