"""`attnlab new` writes a study file that can be run, and nothing where it cannot."""

from __future__ import annotations

import errno
import io
import math
from pathlib import Path
from typing import Any

import pytest

from attnlab.cli import main
from attnlab.cli.new import DEFAULT_SEEDS, MIN_SEEDS, RECALL_STEPS, name_arm, write_new
from attnlab.errors import RequestError
from attnlab.statistics import Noise
from attnlab.statistics.power import compute_power
from attnlab.studies.file.reading import read_design
from attnlab.studies.plan.learning_budget import list_budget_warnings
from attnlab.studies.study import Study


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_file_compares_a_mechanism_with_the_baseline() -> None:
    assert main(["new", "cosine|relu(divide=n)"]) == 0
    for budget in (None, "smoke"):
        design = read_design("study.toml", budget)
        assert design.arms["relu-cosine"].mechanism == "cosine | relu(divide=n)"
        assert design.question == ("Is relu-cosine (cosine | relu(divide=n)) better than the baseline (dot | softmax)?")
        assert design.arms["baseline"].mechanism == "dot | softmax"


def test_a_name_of_the_catalog_and_another_baseline_are_taken() -> None:
    assert main(["new", "value-bypass", "--name", "bypass", "--baseline", "cosine | softmax", "--out", "b.toml"]) == 0
    design = read_design("b.toml")
    assert design.arms["bypass"].mechanism == "dot | softmax | bypass(alpha=0.5)"
    assert design.arms["baseline"].mechanism == "cosine | softmax"


@pytest.mark.parametrize(
    ("line", "baseline", "name"),
    [
        ("dot | sparsemax", "dot | softmax", "sparsemax"),
        ("cosine | identity(divide=sum)", "dot | softmax", "cosine-identity"),
        ("dot | softmax | window(64)", "dot | softmax", "sliding-window"),
        ("dot | softmax | window(3)", "dot | softmax", "window"),
        ("dot | softmax | window(64) @ 0-4; dot | softmax @ 5", "dot | softmax", "idea"),
        ("dot | softmax", "cosine | softmax", "dot"),
    ],
)
def test_an_arm_is_named_after_its_line(line: str, baseline: str, name: str) -> None:
    assert name_arm(line, baseline) == name


def test_several_mechanisms_are_arms_of_one_study(capsys: pytest.CaptureFixture[str]) -> None:
    lines = ["additive | softmax", "dot | softmax | share(qk)"]
    assert main(["new", *lines, "--task", "recall", "--out", "a.toml"]) == 0
    assert "a.toml compares 'additive | softmax' and 'dot | softmax | share(qk)' with" in capsys.readouterr().out
    design = read_design(Path("a.toml"))
    assert [str(arm.mechanism) for arm in design.arms.values()] == ["dot | softmax", *lines]
    assert [*design.arms] == ["baseline", "additive", "shared-qk"]
    assert main(["new", *lines, "--name", "a", "--out", "b.toml"]) == 2
    assert "each mechanism has a --name or none has; there are 2 and 1" in capsys.readouterr().err
    assert main(["new", lines[0], "additive|softmax", "--out", "b.toml"]) == 2
    assert "'additive | softmax' is given twice" in capsys.readouterr().err
    assert main(["new", *lines, "--name", "a", "--name", "a", "--out", "b.toml"]) == 2
    assert "--name a is given twice" in capsys.readouterr().err


def test_fewer_steps_are_written_with_the_warning_of_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "cosine", "--task", "text", "--steps", "60", "--out", "a.toml"]) == 0
    shown = capsys.readouterr().out
    assert "After the audits it takes about 1 minute on two idle cores" in shown
    phase = read_design("a.toml").phases[0]
    assert (phase.segments[0].steps, phase.evaluate_every) == (60, 15)
    assert main(["run", "a.toml", "--dry-run", "--no-calibration"]) == 0
    (warning,) = list_budget_warnings(Study.load("a.toml").plan())
    assert warning in shown
    assert "train 92 updates" in warning
    assert main(["new", "cosine", "--task", "recall", "--steps", "100", "--out", "b.toml"]) == 0
    assert "warning: recall: 100 updates are too few for 'mqar'" in capsys.readouterr().out
    assert read_design("b.toml").phases[0].segments[0].steps == 100
    assert main(["new", "cosine", "--steps", "1500", "--out", "c.toml"]) == 0
    assert "warning" not in capsys.readouterr().out
    assert [phase.segments[0].steps for phase in read_design("c.toml").phases] == [1500, RECALL_STEPS]


TEXT = "".join(f"line {n} of a text with nine words in all\n" for n in range(50)).encode()
LATIN = TEXT + b"caf\xe9\n"


@pytest.mark.parametrize(
    ("text", "files", "message"),
    [
        (
            "folder",
            {"folder/a.txt": TEXT},
            "no file in folder belongs to the split 'train'; it has a.txt. Give one file",
        ),
        ("folder", {"folder/train.txt": TEXT}, "no file in folder belongs to the split 'dev'"),
        ("folder", {"folder/a.pdf": TEXT}, "no file in folder can be read"),
        ("folder", {"folder/train.txt": TEXT, "folder/dev.txt": b""}, "folder is empty: it has no rows"),
        ("folder", {"folder/train.txt": TEXT, "folder/dev.txt": LATIN}, "dev.txt, line 51: byte 4 of the line is 0xe9"),
        ("a.txt", {"a.txt": LATIN}, "a.txt, line 51: byte 4 of the line is 0xe9, which is not UTF-8"),
        ("a.txt", {"a.txt": b""}, "a.txt is empty: it has no rows"),
        ("a.txt", {}, "there is no a.txt"),
        ("embedded:pydocs", {}, "no set is named 'embedded:pydocs'"),
        ("embedded:mqar", {}, "has token ids and no text"),
    ],
)
def test_a_text_that_a_run_refuses_is_refused_with_its_sentence(
    text: str, files: dict[str, bytes], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, content in files.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_bytes(content)
    assert main(["new", "cosine", "--text", text]) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert not shown.out
    assert not Path("study.toml").exists()
    assert main(["new", "cosine", "--task", "text", "--out", "other.toml"]) == 0
    written = Path("other.toml").read_text(encoding="utf-8").replace("embedded:pydoc?paragraphs=1", text)
    Path("other.toml").write_text(written, encoding="utf-8")
    capsys.readouterr()
    assert main(["run", "other.toml", "--dry-run", "--budget", "smoke", "--out", "out"]) == 2
    # What the folder holds differs by the study file, which was not written.
    sentence = shown.err.removeprefix("attnlab: ").partition("; the current folder")[0].rstrip(".;\n")
    assert sentence in capsys.readouterr().err


def test_a_folder_with_splits_is_taken() -> None:
    Path("folder").mkdir()
    for split in ("train", "dev"):
        Path(f"folder/{split}.txt").write_bytes(TEXT)
    assert main(["new", "cosine", "--text", "folder"]) == 0
    assert read_design("study.toml").data["text"].train == "folder"


def test_a_text_of_one_s_own_is_the_only_task(capsys: pytest.CaptureFixture[str]) -> None:
    Path("my.txt").write_text("".join(f'"Line" {n} of a text with nine words in all.\n' for n in range(50)), "utf-8")
    options = ["--text", "my.txt", "--seeds", "6", "--smallest", "2.5", "--size", "small", "--plugin", "my.py"]
    Path("my.py").write_text("", encoding="utf-8")
    assert main(["new", "cosine", *options]) == 0
    design = read_design("study.toml")
    assert [(phase.task, phase.smallest) for phase in design.phases] == [("clm", 2.5)]
    assert (design.data["text"].train, design.data["text"].is_packed) == ("my.txt", True)
    assert design.seeds == [1, 2, 3, 4, 5, 6]
    assert design.phases[0].prompts[0] == '"Line" 0 of a'
    text = Path("study.toml").read_text(encoding="utf-8")
    assert 'train = "my.txt" # 50 documents, of which the last 5 are held out' in text
    assert "a vocabulary of 1000 needs 700,000 tokens of training to beat pairs of words; the text has about" in text
    said = capsys.readouterr().out
    assert "run study.toml --out study --workers 2 --plugin my.py" in said
    assert "For a shorter run lower --steps, for fewer runs --seeds." in said
    assert "hours on two idle cores" in said or "minutes on two idle cores" in said
    assert '"wordpiece:1000" # trained on the text, with every character of it, so that there may be more;' in text
    assert "steps = 2000 # updates of batch × max_len tokens each, fewer take less time" in text
    assert "so expect it to be memorised" in said
    assert main(["new", "cosine", "--task", "recall", "--out", "other.toml"]) == 0
    said = capsys.readouterr().out
    assert "run other.toml --out other --workers 2" in said
    assert "warning" not in said


def test_the_number_of_seeds_comes_with_what_it_detects() -> None:
    detected = {"5": "5 are the fewest that give a verdict; they find a difference of 3.0 SDs", "7": "7 find a diff"}
    for seeds, words in detected.items():
        assert main(["new", "cosine", "--task", "text", "--seeds", seeds, "--out", f"{seeds}.toml"]) == 0
        assert words in Path(f"{seeds}.toml").read_text(encoding="utf-8")
    assert main(["new", "cosine", "--seeds", "4"]) == 0
    assert "fewer than 5 give no verdict" in Path("study.toml").read_text(encoding="utf-8")


def test_the_default_number_of_seeds_doubles_the_power_of_the_fewest() -> None:
    assert main(["new", "cosine"]) == 0
    assert len(read_design("study.toml").seeds) == DEFAULT_SEEDS
    powers = {seeds: compute_power(Noise(1.0, math.inf), seeds, 1.5) for seeds in (MIN_SEEDS, DEFAULT_SEEDS)}
    assert powers[DEFAULT_SEEDS] > 2 * powers[MIN_SEEDS]


def test_every_number_has_its_reason() -> None:
    for task in ("text", "recall"):
        assert main(["new", "cosine", "--task", task, "--out", f"{task}.toml"]) == 0
        lines = Path(f"{task}.toml").read_text(encoding="utf-8").splitlines()
        for setting in ("seeds", "smallest", "n_layer", "n_embd", "steps"):
            first = next(line for line in lines if line.startswith(f"{setting} ="))
            assert " # " in first, first
        design = read_design(f"{task}.toml")
        assert [phase.name for phase in design.phases] == [task]
        assert design.sizes["mini"].config["n_inner"] == {"text": 256, "recall": 8}[task]
        assert design.phases[0].segments[0].steps == {"text": 2000, "recall": 500}[task]


def test_it_asks_only_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    answers = iter(["", "", "7", ""])

    def answer(question: str) -> str:
        asked.append(question)
        return next(answers)

    monkeypatch.setattr("builtins.input", answer)
    monkeypatch.setattr("attnlab.cli.new._is_terminal", lambda: False)
    assert main(["new", "cosine", "--out", "a.toml"]) == 0
    assert asked == []
    monkeypatch.setattr("attnlab.cli.new._is_terminal", lambda: True)
    assert main(["new", "cosine", "--out", "b.toml"]) == 0
    assert [question.split()[0] for question in asked] == ["A", "Size:", "Paired", "The"]
    assert len(read_design("b.toml").seeds) == 7
    asked.clear()
    given = ["--task", "text", "--size", "mini", "--seeds", "5", "--smallest", "1", "--out", "c.toml"]
    assert main(["new", "cosine", *given]) == 0
    assert asked == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["cosine", "--text", "none.txt"], "none.txt"),
        (["cosine", "--size", "huge"], "--size is mini or small, not 'huge'"),
        (["cosine", "--seeds", "0"], "--seeds is a number from 1 to 100"),
        (["cosine", "--smallest", "0"], "--smallest is a difference in percent"),
        (["cosine", "--text", "x.txt", "--task", "recall"], "leave out --text or --task"),
        (["cosin"], "cosin"),
        (["dot | softmax"], "is the baseline itself"),
        (["cosine", "--name", "two words"], "name"),
        (["cosine", "--out", "not/there/study.toml"], "cannot write"),
        (["cosine", "--plugin", "none.py"], "none.py"),
    ],
)
def test_what_cannot_be_written_leaves_nothing(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["new", *arguments]) == 2
    assert words in capsys.readouterr().err
    assert list(Path().iterdir()) == []


def test_a_file_that_is_there_is_left_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    Path("study.toml").write_text("mine", encoding="utf-8")
    assert main(["new", "cosine"]) == 2
    assert "exists already" in capsys.readouterr().err
    assert Path("study.toml").read_text(encoding="utf-8") == "mine"


def test_a_full_disk_leaves_no_empty_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.BytesIO):
        def write(self, content: Any) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    def open_full(path: Path, mode: str) -> Full:
        path.touch(exist_ok=False)
        return Full()

    monkeypatch.setattr(Path, "open", open_full)
    with pytest.raises(RequestError, match="No space left"):
        write_new(tmp_path / "study.toml", "text")
    assert list(tmp_path.iterdir()) == []
