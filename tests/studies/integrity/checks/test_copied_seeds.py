"""A seed with the values of another seed in all arms is found; seeds that agree by chance are not."""

from pathlib import Path

import numpy as np
import pytest

from attnlab.studies.copies_simulation import draw_seeds
from attnlab.studies.integrity import IntegrityKind, Judgement
from attnlab.studies.integrity.checks.copied_seeds import report_copied_seeds
from tests.studies.integrity.result_tables import judge_file, write_rows

ARMS = {
    "base": ["82.11", "81.63", "82.34", "81.92", "82.34"],
    "ours": ["83.12", "82.75", "83.41", "82.83", "83.41"],
    "relu": ["81.05", "82.57", "81.98", "81.23", "81.98"],
    "cosine": ["83.94", "83.27", "82.86", "83.51", "82.86"],
}


def list_repeats(found: Judgement) -> list[tuple[bool, str]]:
    return [(it.is_fault, it.sentence) for it in found.findings if it.kind == IntegrityKind.REPEATED_VALUES]


@pytest.mark.parametrize("are_arms_in_columns", [False, True])
def test_a_copied_seed_is_a_fault(are_arms_in_columns: bool, tmp_path: Path) -> None:
    if are_arms_in_columns:
        rows = [",".join([str(seed), *texts]) for seed, texts in enumerate(zip(*ARMS.values(), strict=True), 1)]
        path = write_rows(tmp_path, f"seed,{','.join(ARMS)}", rows)
    else:
        path = write_rows(tmp_path, "model,s1,s2,s3,s4,s5", [",".join([arm, *texts]) for arm, texts in ARMS.items()])
    ((is_fault, sentence),) = list_repeats(judge_file(path))
    assert is_fault
    assert "seed 5 has the value of seed 3 in all 4 arms (base 82.34, ours 83.41, relu 81.98, cosine 82.86)" in sentence


def test_a_coarse_score_is_no_copy(tmp_path: Path) -> None:
    """Of 100 examples, two seeds often have as many right answers."""
    rows = [",".join([arm, *(f"{round(float(text)):.2f}" for text in texts)]) for arm, texts in ARMS.items()]
    assert not any(is_fault for is_fault, _ in list_repeats(judge_file(write_rows(tmp_path, "m,s1,s2,s3,s4,s5", rows))))


def test_two_arms_are_too_few(tmp_path: Path) -> None:
    rows = [",".join([arm, *ARMS[arm]]) for arm in ("base", "ours")]
    assert not list_repeats(judge_file(write_rows(tmp_path, "model,s1,s2,s3,s4,s5", rows)))


def test_a_seed_that_some_arms_lack(tmp_path: Path) -> None:
    rows = [",".join([arm, *texts, "" if arm == "relu" else "83.0"]) for arm, texts in ARMS.items()]
    ((is_fault, sentence),) = list_repeats(judge_file(write_rows(tmp_path, "model,s1,s2,s3,s4,s5,s6", rows)))
    assert is_fault
    assert "seed 5 has the value of seed 3 in all 4 arms" in sentence


@pytest.mark.parametrize("is_coarse", [False, True])
def test_clean_tables_raise_no_alarm(is_coarse: bool) -> None:
    rng = np.random.default_rng(int(is_coarse))
    tables = [draw_seeds(rng, is_copied=False, is_coarse=is_coarse) for _ in range(200)]
    assert not any(list(report_copied_seeds(table, ())) for table in tables)


def test_copied_seeds_are_often_found() -> None:
    rng = np.random.default_rng(0)
    findings = [list(report_copied_seeds(draw_seeds(rng, is_copied=True), ())) for _ in range(100)]
    assert sum(any(finding.is_fault for finding in of_table) for of_table in findings) > 0.5 * len(findings)
