"""`attnlab explain` prints what `attnlab.explain` says."""

import json

import pytest

import attnlab
from attnlab.cli import main


def test_it_says_what_the_library_says(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "dot | relu", "baseline", "--length", "64"]) == 0
    said = [str(attnlab.explain(line, 64, causal=True)) for line in ("dot | relu", "baseline")]
    assert capsys.readouterr().out == "\n\n".join(said) + "\n"


def test_json_names_kernel_and_refusals(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "dot | relu", "--no-causal", "--json"]) == 0
    (shown,) = json.loads(capsys.readouterr().out)
    assert (shown["kernel"], shown["length"], shown["causal"]) == ("blockwise", 512, False)
    assert "linear" in shown["refused"]


def test_the_sizes_are_set_and_printed_with_the_cost(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "dot | softmax"]) == 0
    assert "(causal, batch 1, 4 heads of 64, length 512, float32)" in capsys.readouterr().out
    options = ["--batch", "8", "--heads", "1", "--head-dim", "16", "--no-causal", "--length", "128"]
    assert main(["explain", "dot | softmax", *options]) == 0
    shown = capsys.readouterr().out
    assert "(not causal, batch 8, 1 head of 16, length 128, float32)" in shown
    assert str(attnlab.explain("dot | softmax", 128, batch=8, num_heads=1, head_dim=16)) == shown.rstrip()
    assert main(["explain", "dot | softmax", *options, "--json"]) == 0
    (record,) = json.loads(capsys.readouterr().out)
    assert (record["batch"], record["num_heads"], record["head_dim"]) == (8, 1, 16)
    assert "1 query, 512 keys" in str(attnlab.explain("dot | softmax", 512, num_queries=1))


def test_each_mechanism_of_a_line_by_layer_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "gemma-hybrid", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [one["mechanism"] for one in shown] == ["dot | softmax | window(64)", "dot | softmax"]
    assert [one["kernel"] for one in shown] == ["banded", "sdpa"]
    assert {one["asked"] for one in shown} == {"gemma-hybrid"}


def test_a_verb_that_measures_one_call_refuses_a_line_by_layer(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "gemma-hybrid"]) == 2
    assert "one mechanism is needed here; pass one part" in capsys.readouterr().err


@pytest.mark.usefixtures("mixers")
def test_a_mixer_is_called_a_module_and_the_other_parts_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    line = "mixer(average) @ 0; dot | softmax @ 1"
    assert main(["explain", line]) == 0
    first, second = capsys.readouterr().out.rstrip("\n").split("\n\n")
    assert first.startswith("mixer(average)\n  module   your module in place of attention")
    assert second == str(attnlab.explain("dot | softmax", 512, causal=True))
    assert main(["explain", line, "--json"]) == 0
    assert [part["kernel"] for part in json.loads(capsys.readouterr().out)] == [None, "sdpa"]
