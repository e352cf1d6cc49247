"""`attnlab bench` measures what it is asked for, says which kernel and why, and refuses at once."""

import json
import re
from pathlib import Path

import pytest
import torch

from attnlab import machine
from attnlab.cli import main
from attnlab.kernels import comparison, measure

SMALL = ["--lengths", "8,16", "--heads", "2", "--head-dim", "8"]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the fewest rounds."""
    monkeypatch.setattr(comparison, "measure", lambda steps, budget: measure.measure(steps, 0))


def test_several_mechanisms_share_a_table_with_ratios(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "dot | relu", "cosine-linear", *SMALL]) == 0
    lines = capsys.readouterr().out.splitlines()
    (header,) = [number for number, line in enumerate(lines) if line.startswith("length ")]
    assert lines[header].split("  ")[0:1] == ["length"]
    assert "mechanism" in lines[header]
    assert lines[header].endswith("time ÷ first")
    rows = [re.split(r"\s{2,}", line) for line in lines[header + 1 : header + 5]]
    assert [row[:2] for row in rows] == [[n, name] for n in ("8", "16") for name in ("dot | relu", "cosine-linear")]
    assert [row[-1] for row in rows if row[1] == "dot | relu"] == ["1.00", "1.00"]
    assert lines[-1] == "time ÷ first: time divided by that of 'dot | relu' at the same length"
    assert main(["bench", "dot | relu", "cosine-linear", "--json", *SMALL]) == 0
    results = json.loads(capsys.readouterr().out)["results"]
    first = {result["length"]: result["own"]["seconds"] for result in results if result["asked"] == "dot | relu"}
    for result in results:
        assert result["time_to_first"] == pytest.approx(result["own"]["seconds"] / first[result["length"]])
        assert result["time_to_sdpa"] == pytest.approx(result["own"]["seconds"] / result["sdpa"]["seconds"])


def test_one_mechanism_has_no_ratio_to_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "dot | relu", *SMALL]) == 0
    out = capsys.readouterr().out
    assert "time ÷ SDPA" in out
    assert "÷ first" not in out


def test_every_mechanism_names_its_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "dot | relu", "cosine-linear", *SMALL]) == 0
    out = capsys.readouterr().out
    assert f"torch {torch.__version__}" in out
    assert "1 thread" in out
    assert "causal, batch 1, 2 heads of 8, fp32" in out
    assert "\ndot | relu\nkernel blockwise: " in out
    assert "\ncosine-linear\nkernel linear: " in out
    for length in ("8", "16"):
        assert len([line for line in out.splitlines() if line.split()[:1] == [length]]) == 2


def test_json_holds_seconds_and_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "relu-attention", "--no-causal", "--dtype", "fp64", "--json", *SMALL]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["machine"]["num_threads"] == 1
    assert shown["setting"]["dtype"] == "fp64"
    assert shown["setting"]["causal"] is False
    first, second = shown["results"]
    assert (first["length"], second["length"]) == (8, 16)
    assert first["mechanism"] == "dot | relu(divide=n)"
    assert first["kernel"] == "blockwise"
    assert first["growth"] is None
    assert isinstance(second["growth"], float)
    for peer in ("own", "sdpa", "eager"):
        assert second[peer]["seconds"] > 0
        assert second[peer]["memory"] > 0


def test_a_kernel_can_be_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "cosine-linear", "--kernel", "blockwise", "--json", *SMALL]) == 0
    results = json.loads(capsys.readouterr().out)["results"]
    assert {result["kernel"] for result in results} == {"blockwise"}


def test_where_eager_is_left_out_the_table_says_why(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "EAGER_LIMIT", 1000)
    assert main(["bench", "manhattan | softmax", *SMALL]) == 0
    out = capsys.readouterr().out
    assert "eager is omitted at length 16: it would take about " in out
    assert "the limit is 1.00 kB" in out


def test_the_figure_is_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figure = tmp_path / "growth.svg"
    assert main(["bench", "dot | relu", "--figure", str(figure), *SMALL]) == 0
    picture = figure.read_text(encoding="utf-8")
    for text in ("dot | relu · blockwise", "SDPA", "eager PyTorch"):
        assert text in picture
    assert str(figure) in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["dot | rellu"], "did you mean 'relu'?"),
        (["basline"], "did you mean 'baseline'?"),
        (["baseline", "--lengths", "8,many"], "'many'"),
        (["baseline", "--lengths", "8,,16"], "positive whole numbers and commas"),
        (["baseline", "--lengths", "-8"], "'-8'"),
        (["baseline", "--lengths", "0"], "'0'"),
        (["baseline", "--lengths", "²"], "'²'"),
        (["baseline", "--batch", "0"], "--batch"),
        (["baseline", "--heads", "-1"], "--heads"),
        (["baseline", "--head-dim", "wide"], "--head-dim"),
        (["baseline", "--dtype", "fp16"], "bf16"),
        (["baseline", "--dtype", "float32"], "write fp32 instead of 'float32'"),
        (["baseline", "--lengths", "64", "128"], "separate lengths by commas: --lengths 64,128"),
        (["baseline", "--kernel", "blokwise"], "did you mean 'blockwise'?"),
        (["baseline", "--kernel", "linear"], "needs identity weights"),
        (["baseline", "--figure", "chart.gif"], ".svg"),
        (["baseline", "--figure", "missing/chart.svg"], "no folder"),
        ([], "For example: attnlab bench"),
    ],
)
def test_a_wrong_request_is_one_message_and_measures_nothing(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(comparison, "measure")
    assert main(["bench", *arguments]) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.err.startswith("attnlab: ")
    assert shown.out == ""


def test_bf16_that_would_end_the_process_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "bf16_fault", lambda: "bf16 products end the process here; set X=Y")
    monkeypatch.delattr(comparison, "measure")
    assert main(["bench", "baseline", "--dtype", "bf16", *SMALL]) == 2
    assert capsys.readouterr().err == "attnlab: bf16 products end the process here; set X=Y\n"
