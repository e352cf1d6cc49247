"""The arm of a run is a setting that several runs share, not the name of the run."""

from pathlib import Path

import pytest

from attnlab.errors import RequestError
from attnlab.studies.integrity import read_table
from tests.studies.integrity.result_tables import write_text

TRACKED = "Name,State,{column},lr,seed,eval/acc\n" + "".join(
    f"{name}-{number},finished,{arm},0.1,{seed},0.{number}1\n"
    for number, (name, arm, seed) in enumerate(
        [("vivid-sun", "softmax", 1), ("old-sea", "softmax", 2), ("red-sky", "cosine", 1), ("dry-fog", "cosine", 2)],
        start=1,
    )
)


@pytest.mark.parametrize("column", ["model.attention", "params.attn", "attn", "config/model", "mechanism_kind"])
def test_the_arm_is_a_setting_and_not_the_name_of_each_run(column: str, tmp_path: Path) -> None:
    table = read_table(write_text(tmp_path, TRACKED.format(column=column)))
    assert table.arms == ["softmax", "cosine"]
    assert table.groups == [""]


def test_the_arm_of_mlflow_is_a_parameter(tmp_path: Path) -> None:
    rows = [
        f"{n}ab,FINISHED,2{n}.5,{arm},{n % 2},{arm}-{n}" for n, arm in enumerate(["dot", "dot", "forget", "forget"])
    ]
    header = "run_id,status,metrics.val_ppl,params.kernel,params.seed,tags.mlflow.runName"
    assert read_table(write_text(tmp_path, "\n".join([header, *rows]))).arms == ["dot", "forget"]


def test_names_of_runs_are_arms_without_another_column(tmp_path: Path) -> None:
    text = "Name,State,optimizer.name,seed,acc\na,finished,adam,1,0.5\nb,finished,adam,2,0.6\n"
    assert read_table(write_text(tmp_path, text)).arms == ["a", "b"]


def test_two_settings_that_may_be_the_arm_are_a_question(tmp_path: Path) -> None:
    text = "Name,State,kernel,optim,seed,acc\na,finished,x,adam,1,0.5\nb,finished,x,sgd,2,0.6\nc,finished,y,sgd,1,0.6\n"
    with pytest.raises(RequestError, match=r"which column of .* names the arms: 'kernel' .*'optim'"):
        read_table(write_text(tmp_path, text))


def test_models_in_rows_of_their_own_stay_arms(tmp_path: Path) -> None:
    text = "model,family,acc\nA,softmax,81\nB,softmax,82\nC,linear,83\n"
    assert read_table(write_text(tmp_path, text)).arms == ["A", "B", "C"]
