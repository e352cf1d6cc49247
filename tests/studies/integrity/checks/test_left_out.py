"""What could not be checked is said, with the option that would check it."""

from pathlib import Path

import pytest

from attnlab.studies.integrity import IntegrityKind, JudgeOptions, TableHints, judge, read_table
from tests.studies.integrity.result_tables import write_text

SEEDS = "model,s1,s2,s3,s4,s5\na,84.2,84.3,84.1,83.8,84.0\nb,85.6,86.0,86.5,85.8,85.7\n"
ARMS = "seed,base,ours,n_test\n" + "".join(f"{seed},60.{seed},61.{seed},1319\n" for seed in range(6))
MEANS = "model,accuracy,n_test\na,84.21 ± 0.2,200\nb,85.33 ± 0.2,200\n"


@pytest.mark.parametrize(
    ("text", "num_examples", "metric", "words"),
    [
        (SEEDS, 2001, None, ("n = 2001, from --examples", "--metric accuracy")),
        (ARMS, None, None, ("n = 1319, from the table", "--metric accuracy")),
        (SEEDS, 2001, "f1", ("--examples 2001 has no effect",)),
        (MEANS, None, None, ("multiples of 1/(k·n)", "--seeds N")),
        (SEEDS, None, None, ()),
        (SEEDS, 201, "accuracy", ()),
        (SEEDS, 2001, "accuracy", ("--examples 2001 has no effect", "multiples of 1/2001 whatever they are")),
    ],
)
def test_checks_left_out(
    text: str, num_examples: int | None, metric: str | None, words: tuple[str, ...], tmp_path: Path
) -> None:
    table = read_table(write_text(tmp_path, text), hints=TableHints(metric=metric))
    found = judge(table, JudgeOptions(num_examples=num_examples))
    left_out = [one for one in found.findings if one.kind == IntegrityKind.CHECKS_LEFT_OUT]
    assert len(left_out) == bool(words)
    assert all(word in left_out[0].sentence for word in words)
    assert not any(one.is_fault for one in left_out)
