"""A folder belongs to one run, and paired runs have the same hashes."""

from pathlib import Path

import pytest

from attnlab.errors import TrainingError
from attnlab.training import Segment, build
from attnlab.training.loop.identity import check_config, compute_pairing, write_config

from ..runs import small


def test_a_folder_refuses_another_run_but_another_micro_batch(tmp_path: Path) -> None:
    write_config(build(small()), tmp_path)
    check_config(build(small()), tmp_path)
    check_config(build(small(segments=(Segment(steps=6, batch=4, micro_batch=2),))), tmp_path)
    with pytest.raises(TrainingError, match=r"holds another run, which differs in .*seed"):
        check_config(build(small(seed=4)), tmp_path)


def test_arms_of_one_seed_are_paired_and_seeds_are_not() -> None:
    one, arm = compute_pairing(build(small())), compute_pairing(build(small(mechanism="cosine | softmax")))
    seed = compute_pairing(build(small(seed=4)))
    assert one == arm
    assert one["evaluation"] == seed["evaluation"]
    assert one["batches"] != seed["batches"]
    assert one["weights"] != seed["weights"]
