"""The attention of trained models on one held-out text is computed once and kept; or there is a reason why not."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from attnlab.reports.study.attention import make_attention_section
from attnlab.studies.answers import attention
from attnlab.studies.answers.attention_record import KIND, AttentionRecord, find_attention
from attnlab.studies.answers.study_folder import open_record

from ..samples import quiet, study


def test_the_maps_of_trained_models_are_stored_and_their_operations_counted(
    here: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "study"
    study(seeds=[1], arms__linear="cosine | identity(divide=n)").run(folder, say=quiet)
    with open_record(folder) as record:
        found = find_attention(record)
        assert isinstance(found, AttentionRecord)
        assert list(found.arms) == ["dot", "bypass", "slow", "linear"]
        assert found.missing == {}
        assert len(found.tokens) == 24
        assert all(name.isdigit() for name in found.tokens)
        assert {maps.weights.shape for maps in found.arms.values()} == {(1, 2, 24, 24)}
        np.testing.assert_allclose(found.arms["dot"].weights.sum(-1), 1, atol=0.2)
        assert (found.arms["linear"].weights < 0).any()
        assert len(record.ledger.events(KIND)[0]) < 4 * 4096
        assert all(row.result["operations"] > 1e5 for row in record.results.values())
    shutil.rmtree(folder / "runs")  # what is stored needs no checkpoints
    monkeypatch.setattr(attention, "compute_attention", None)
    with open_record(folder) as record:
        section = make_attention_section(record)
        assert section is not None
        assert len(section.figures) == 2
        assert "recall, tiny, seed 1" in section.sentence


def test_weights_that_cannot_be_read_are_tried_again_and_the_others_shown(
    here: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "study"
    study(seeds=[1]).run(folder, say=quiet)
    with open_record(folder) as record:
        lost = next(run for run in record.runs if run.arm == "slow")
        shutil.rmtree(record.folder_of(lost) / "checkpoints")
        found = find_attention(record)
        assert isinstance(found, AttentionRecord)
        assert list(found.arms) == ["dot", "bypass"]
        assert list(found.missing) == ["slow"]
        assert record.ledger.events(KIND) == []
        section = make_attention_section(record)
        assert section is not None
        assert list(section.missing) == ["slow"]
