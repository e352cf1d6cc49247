"""The number of updates of a run is read from whichever file has it."""

import json
from pathlib import Path

from attnlab.training.record.folder import CONFIG, RESULT, STEPS, read_num_steps, read_result


def test_steps_come_from_the_first_file_that_knows_them(tmp_path: Path) -> None:
    assert read_num_steps(tmp_path) is None
    (tmp_path / CONFIG).write_text(json.dumps({"segments": [{"steps": 3}, {"steps": None}]}))
    assert read_num_steps(tmp_path) is None
    (tmp_path / CONFIG).write_text(json.dumps({"segments": [{"steps": 3}, {"steps": 4}]}))
    assert read_num_steps(tmp_path) == 7
    (tmp_path / RESULT).write_text(json.dumps({"num_steps": 8}))
    assert read_num_steps(tmp_path) == 8
    (tmp_path / STEPS).write_text(json.dumps([4, 5]))
    assert read_num_steps(tmp_path) == 9


def test_a_run_without_a_result_has_not_ended(tmp_path: Path) -> None:
    assert read_result(tmp_path) is None
