"""What every verb shares: help without torch, exit statuses, and errors as one message."""

import os
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from attnlab.cli.options import Plugins
from attnlab.cli.verbs import VERBS, main
from attnlab.errors import AttnlabError, AttnlabWarning

HEAVY = ("torch", "numpy", "transformers", "scipy", "vl_convert")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(arguments, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], [], *([verb, "--help"] for verb in VERBS)])
def test_answers_without_loading_anything_heavy(arguments: list[str]) -> None:
    code = (
        "import sys\n"
        "from attnlab.cli import main\n"
        f"status = main({arguments!r})\n"
        f"loaded = [name for name in {HEAVY!r} if name in sys.modules]\n"
        "sys.exit(f'loaded {loaded}' if loaded else status)\n"
    )
    done = run(sys.executable, "-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.parametrize("verb", VERBS)
def test_help_lists_every_verb(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert f" {verb} " in capsys.readouterr().out
    assert VERBS[verb].__doc__


def test_runs_as_a_module() -> None:
    done = run(sys.executable, "-m", "attnlab", "--version")
    assert done.returncode == 0
    assert done.stdout.startswith("attnlab 0.")


def test_an_unknown_verb_names_the_closest_match(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mechanism"]) == 2
    shown = capsys.readouterr()
    assert "'mechanism'" in shown.err
    assert "Did you mean 'mechanisms'?" in shown.err
    assert "attnlab --help" in shown.err
    assert shown.out == ""


def test_an_unknown_option_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--jsn"]) == 2
    assert "--json" in capsys.readouterr().err


def raising(error: BaseException) -> Callable[[], int]:
    def verb() -> int:
        """Fail."""
        raise error

    return verb


def test_an_error_of_ours_is_one_message(capsys: pytest.CaptureFixture[str]) -> None:
    message = "unknown argument 'sofmax'\n  dot | sofmax\n        ^"
    assert main(["fail"], {"fail": raising(AttnlabError(message))}) == 2
    shown = capsys.readouterr()
    assert shown.err == f"attnlab: {message}\n"
    assert shown.out == ""


def test_an_unknown_stage_may_be_in_a_file_that_was_not_given_to_a_verb_that_takes_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    error = AttnlabError("unknown stage 'softplus', did you mean 'softmax'?")

    def fail(plugin: Plugins = None) -> int:
        """Fail."""
        raise error

    assert main(["fail"], {"fail": fail}) == 2
    assert "a stage of your own comes with --plugin FILE.py" in capsys.readouterr().err
    assert main(["fail"], {"fail": raising(error)}) == 2
    assert "--plugin" not in capsys.readouterr().err


def test_a_bug_of_ours_is_one_sentence_and_its_traceback_is_in_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fail"], {"fail": raising(ZeroDivisionError("by nought"))}) == 3
    said = capsys.readouterr().err
    assert said.startswith("attnlab: this is a bug in attnlab, not in what you typed: `attnlab fail` ended with Zero")
    assert said.count("\n") == 1
    log = Path(re.search(r"which is in (.*)\.\n", said)[1])  # type: ignore[index]
    text = log.read_text()
    log.unlink()
    assert "attnlab fail" in text
    assert "Traceback" in text
    assert "by nought" in text


def test_a_file_that_cannot_be_opened_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fail"], {"fail": raising(PermissionError(13, "Permission denied", "a/file"))}) == 2
    assert capsys.readouterr().err.startswith("attnlab: a/file: Permission denied; ")


def test_too_little_memory_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fail"], {"fail": raising(MemoryError())}) == 2
    assert "not enough memory" in capsys.readouterr().err


def test_ctrl_c_stops_cleanly(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fail"], {"fail": raising(KeyboardInterrupt())}) == 130
    assert capsys.readouterr().err == "attnlab: stopped\n"


@pytest.mark.parametrize("status", [0, 1])
def test_a_verb_answers_with_its_status(status: int) -> None:
    def verb() -> int:
        """Answer."""
        return status

    assert main(["answer"], {"answer": verb}) == status


@pytest.mark.parametrize(("target", "status"), [("/dev/full", 2), ("closed", 141)])
def test_output_that_nobody_takes_ends_without_a_traceback(target: str, status: int) -> None:
    command = [sys.executable, "-m", "attnlab", "mechanisms"]
    if target == "closed":
        reader, writer = os.pipe()
        os.close(reader)
    else:
        writer = os.open(target, os.O_WRONLY)
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert done.returncode == status
    assert "Traceback" not in done.stderr


@pytest.mark.filterwarnings("always")
def test_a_warning_of_ours_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    def verb() -> int:
        """Warn."""
        warnings.warn("attnlab: slow here", AttnlabWarning, stacklevel=1)
        return 0

    assert main(["warn"], {"warn": verb}) == 0
    assert capsys.readouterr().err == "attnlab: warning: slow here\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["judge", "~nosuchuser/table.csv"], ["data", "a" * 300], ["run", "~nosuchuser/study.toml"],
        ["data", "/dev/zero"], ["plan", "~nosuchuser"], ["compare", "b" * 300], ["report", "~nosuchuser"],
        ["generate", "c" * 300], ["export", "x", "--out", "~nosuchuser/y"],
        ["train", "clm", "--out", "~nosuchuser/z", "--architecture", "gpt2"],
        ["new", "cosine | softmax", "--out", "~nosuchuser/s.toml"],
        ["recipes", "copy", "quickstart", "--out", "d" * 300],
        ["construct", "argmax", "--query", "~nosuchuser/q.json"],
        ["explain", "dot | softmax", "--plugin", "~nosuchuser"],
        ["explain", "dot | softmax", "--length", "9" * 400], ["audit", "--model", "~nosuchuser/model"],
        ["score", "squad", "--data", "~nosuchuser/d", "--predictions", "p"],
        ["bench", "dot", "--figure", "~nosuchuser/f.svg"], ["register", "quickstart", "--out", "e" * 300],
        ["watch", "~nosuchuser"], ["mechanisms", "--page", "~nosuchuser/page"],
        ["plan", "quickstart", "--spread", "1e308"],
    ],
)  # fmt: skip
def test_a_path_or_number_that_cannot_be_is_one_sentence(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("attnlab: ")
    assert "Traceback" not in shown
    assert list(tmp_path.iterdir()) == []


def test_a_length_of_a_billion_is_explained_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "dot | relu", "manhattan | softmax", "--length", "1000000000"]) == 0
    assert "operations forward" in capsys.readouterr().out


def test_control_characters_of_arguments_and_data_are_shown(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:  # fmt: skip
    table = tmp_path / "table.csv"
    table.write_text(
        "arm,seed,acc\x1b]0;x\x07\n" + "".join(f"\u202e{arm},{n},0.{n}\n" for arm in "ab" for n in range(1, 6))
    )
    main(["judge", str(table)])
    main(["explain", "dot \x1b[31m"])
    shown = "".join(capsys.readouterr())
    assert "\\u001b[31m" in shown
    assert "\\u202e" in shown
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", shown)
