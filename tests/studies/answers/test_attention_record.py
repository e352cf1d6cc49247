"""Stored attention is small and close to what it was; a study without any says why."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from attnlab.studies.answers.attention_record import AttentionRecord, HeadWeights, choose_runs, find_attention
from attnlab.studies.answers.study_folder import open_record

from ..folders import BETTER, DOT, two_arms, write_folder


def test_weights_are_rounded_and_small() -> None:
    drawn = np.random.default_rng(0).dirichlet(np.full(24, 0.2), (12, 12, 24)) * np.tri(24)
    drawn[0, 0] *= -1
    content = AttentionRecord({"a": "1"}, ("x",) * 24, {"a": HeadWeights(drawn, tuple(range(12)))}, {"b": "why"}).dump()
    read = AttentionRecord.parse(content)
    assert len(content) < 50_000
    assert read.missing == {"b": "why"}
    assert read.arms["a"].layers == tuple(range(12))
    assert np.abs(np.sqrt(np.abs(read.arms["a"].weights)) - np.sqrt(np.abs(drawn))).max() < 0.02
    assert (np.sign(read.arms["a"].weights) * np.sign(drawn) >= 0).all()


def test_no_weights_at_all_can_be_stored() -> None:
    weights = HeadWeights(np.zeros((1, 1, 2, 2)), (0,))
    assert not HeadWeights.of(weights.record()).weights.any()


def test_the_first_seed_that_the_baseline_ended_counts(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "study", {"dot": (None, *DOT[1:]), "better": BETTER})
    with open_record(folder) as record:
        assert [(run.arm, run.seed) for run in choose_runs(record)] == [("dot", 2), ("better", 2)]


def test_the_last_phase_that_is_compared_counts(tmp_path: Path) -> None:
    plain = two_arms()
    plain["phases"].append({**plain["phases"][0], "name": "later", "optimizer": {"lr": 1e-2}})
    del plain["phases"][1]["smallest"]
    with open_record(write_folder(tmp_path / "study", {"dot": DOT, "better": BETTER}, plain)) as record:
        assert {run.phase for run in choose_runs(record)} == {"recall"}


def test_a_study_without_checkpoints_or_that_cannot_be_written_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_folder(tmp_path / "study", {"dot": DOT, "better": BETTER})
    with open_record(folder) as record:
        assert "those of this study are not in its folder" in str(find_attention(record))
        os.makedirs(record.folder_of(choose_runs(record)[0]) / "checkpoints")
        monkeypatch.setattr(record.ledger, "is_read_only", True)
        assert "cannot be written" in str(find_attention(record))


def test_a_baseline_that_never_ended_has_none(tmp_path: Path) -> None:
    with open_record(write_folder(tmp_path / "study", {"dot": (None,) * 5, "better": BETTER})) as record:
        assert find_attention(record) == "the baseline has no run that ended"
