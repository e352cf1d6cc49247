"""`attnlab audit` prints findings, draws them, and answers with its exit status."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from attnlab.check_names import NAMES, find_check
from attnlab.cli import main
from attnlab.cli.audit import SHORT

QUICK = ["--only", "gradient,weights"]


def test_a_sound_mechanism_is_status_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "dot | softmax", *QUICK]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("dot | softmax: causal and not causal")
    assert "Sound: every check passed (2)." in shown


def test_one_that_fails_is_status_1_and_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "dot | softmax | mask(after)", "--causal", "--only", "leak"]) == 1
    shown = capsys.readouterr().out
    assert "FAILED    causal leak" in shown
    assert "Cause: 'mask(after)'" in shown
    assert shown.splitlines()[-1] == "FAILED: causal leak"


def test_many_make_one_table_with_every_failure_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "baseline", "hard", "dot | relu", *QUICK]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["mechanism", "gradient", "weights"]
    assert lines[1].split() == ["baseline", "passed", "reported"]
    assert lines[2].split() == ["hard", "FAILED", "reported"]
    assert lines[3].split() == ["dot", "|", "relu", "passed", "reported"]
    assert "hard: gradient flow FAILED, 2 (at most 0)" in lines
    assert lines[-1].startswith("2 of 3 passed these checks, 1 failed")


def test_the_catalog_is_one_table(capsys: pytest.CaptureFixture[str]) -> None:
    from attnlab import CATALOG

    assert main(["audit", "--catalog", "--only", "weights"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1 : len(CATALOG) + 1]] == list(CATALOG)


def test_details_print_every_number(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "baseline", "--only", "weights", "--details"]) == 0
    assert "first token's share" in capsys.readouterr().out


def test_json_holds_all_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "hard", *QUICK, "--json"]) == 1
    record = json.loads(capsys.readouterr().out)
    assert record["findings"]["gradient flow"]["passed"] is False
    assert main(["audit", "hard", "baseline", *QUICK, "--json"]) == 1
    assert [one["passed"] for one in json.loads(capsys.readouterr().out)] == [False, True]


def test_a_figure_is_drawn_of_one_or_several(tmp_path: Path) -> None:
    for number, lines in enumerate((["baseline"], ["baseline", "hard"])):
        target = tmp_path / f"{number}.svg"
        assert main(["audit", *lines, "--only", "magnitude", "--figure", str(target)]) == 0
        assert target.read_text(encoding="utf-8").count(">Growth with the length<") == len(lines)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "an audit takes mechanisms, or --catalog, or --model; it got nothing"),
        (["baseline", "--catalog"], "it got more than one of them"),
        (["dot | sofmax"], "did you mean 'softmax'"),
        (["baseline", "--only", "leek"], "no check is named 'leek'"),
        (["baseline", "--only", "leak,gradients"], "no check is named 'gradients', did you mean 'gradient'?"),
        (["baseline", "--figure", "out.gif"], "gif"),
        (["baseline", "--plugin", "nowhere.py"], "there is none at 'nowhere.py'"),
        (["--model", "gpt2", "--train"], "--train installs a mechanism in a tiny model"),
        (["--model", "gpt2", "--only", "cost"], "'cost' is a check of a mechanism, not of a model"),
        (["--model", "no/such/folder/here"], "there is no folder 'no/such/folder/here'"),
    ],
)
def test_a_wrong_request_is_status_2_and_one_message(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert main(["audit", *arguments]) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert not shown.out
    assert "Traceback" not in shown.err


def test_a_saved_model_is_audited(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=48, n_embd=32, n_layer=1, n_head=2, n_positions=32, bos_token_id=1, eos_token_id=2)
    GPT2LMHeadModel(config).save_pretrained(tmp_path)  # type: ignore[no-untyped-call]
    assert main(["audit", "--model", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("GPT2LMHeadModel, ")
    assert "passed    causal leak" in shown


def test_a_plugin_brings_checks_and_stages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from attnlab.audits import CHECKS

    plugin = tmp_path / "mine.py"
    plugin.write_text(
        "from attnlab.audits import Finding, check\n"
        "@check('mine')\n"
        "def mine(subject):\n"
        "    return Finding('mine', False, 2.0, 1.0, 'It is never good enough.', 'the plugin')\n",
        encoding="utf-8",
    )
    try:
        assert main(["audit", "baseline", "--only", "mine", "--plugin", str(plugin)]) == 1
    finally:
        CHECKS["mechanism"].pop("mine", None)
    assert "It is never good enough." in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["baseline", "--only", "gradients"], ["--model", "m", "--only", "cost"]])
def test_a_wrong_name_of_a_check_is_found_before_torch_is_imported(arguments: list[str]) -> None:
    code = f"import sys; from attnlab.cli import main; print(main({['audit', *arguments]!r}), 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "2 False\n", done.stderr


def test_the_heads_of_the_table_are_names_that_only_takes() -> None:
    assert set(SHORT) <= set(NAMES["mechanism"])
    assert {find_check(head, "mechanism"): head for head in SHORT.values()} == SHORT
