"""Runs that give one answer to everything are found."""

from pathlib import Path

import pytest

from tests.studies.integrity.result_tables import (
    judge_file,
    list_faults,
)


@pytest.mark.parametrize("num_other", [0, 1])
@pytest.mark.parametrize("has_labels", [True, False])
def test_one_answer_to_everything(tmp_path: Path, num_other: int, has_labels: bool) -> None:
    rows = []
    for arm in ("base", "new"):
        for seed in range(5):
            for example in range(200):
                label = (example * 7 + seed) % 3
                said = (
                    (0 if example >= num_other else 1)
                    if (arm, seed) == ("new", 3)
                    else (label + (example % 5 == seed)) % 3
                )
                rows.append(f"{arm},{seed},{example},{said}" + f",{label}" * has_labels)
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["arm,seed,id,prediction" + ",label" * has_labels, *rows]), encoding="utf-8")
    found = [finding for finding in judge_file(str(path)).faults if finding.check == "one answer only"]
    if num_other and not has_labels:
        # Without labels, nearly constant answers may be nearly right.
        assert found == []
        return
    assert len(found) == 1
    assert found[0].sentence.startswith("arm 'new' seed 3: ")
    assert ("most frequent label would be correct" in found[0].sentence) == has_labels


def test_answers_of_a_set_with_one_label_may_be_one(tmp_path: Path) -> None:
    rows = "\n".join(f"{arm},1,{i},1,1" for arm in "ab" for i in range(50))
    path = tmp_path / "t.csv"
    path.write_text(f"arm,seed,id,prediction,label\n{rows}", encoding="utf-8")
    assert "one answer only" not in list_faults(judge_file(str(path)))
