"""Studies with a known answer, trained for real: the terminal, the report and `attnlab judge` say the right words."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from attnlab.cli import main
from attnlab.studies.run.workers import RunEvent, RunOrder

from .in_process import InProcess

pytestmark = pytest.mark.usefixtures("here")

STUDY = """\
name = "planted"
baseline = "dot"
seeds = [1, 2, 3, 4, 5]

[arms]
dot = "dot | softmax"
cosine = "cosine(scale=8) | softmax"

[sizes.tiny]
architecture = "gpt2"

[sizes.tiny.config]
n_layer = 2
n_embd = 32
n_head = 2
n_positions = 16
initializer_range = 0.1
resid_pdrop = 0.0
embd_pdrop = 0.0
attn_pdrop = 0.0

[data.copy]
train = "embedded:copy?vocab=8&length=9"
dev = "embedded:copy?vocab=8&length=9&examples=200&seed=1"

[[phases]]
name = "copy"
task = "copy"
task_settings = { vocab = 8, length = 9, is_fresh = true }
data = "copy"
smallest = 0.02
precision = "fp32"
[[phases.segments]]
steps = 200
batch = 32
[phases.optimizer]
lr = 1e-2
"""

Run = Callable[..., "Said"]


class Said:
    """What a study says in its three places, without line breaks."""

    def __init__(self, terminal: str, report: str, judge: str) -> None:
        text = html.unescape(re.sub(r"<[^>]*>", "", report))
        self.places = {"terminal": terminal, "report": text, "judge": judge}

    def everywhere(self, words: str) -> bool:
        """Tell whether the words stand in all three places."""
        missing = [place for place, text in self.places.items() if words not in " ".join(text.split())]
        assert not missing, (words, missing, self.places["terminal"][-3000:])
        return True


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return what runs a study file, with settings, and reads what is said."""

    def runs(*options: str, text: str = STUDY, recipe: str = "", out: str = "study") -> Said:
        file, folder = tmp_path / "study.toml", tmp_path / out
        file.write_text(text, encoding="utf-8")
        main(["run", recipe or str(file), "--out", str(folder), *options])
        terminal = capsys.readouterr().out
        main(["judge", str(folder)])
        return Said(terminal, (folder / "report.html").read_text(encoding="utf-8"), capsys.readouterr().out)

    return runs


def test_both_arms_at_the_ceiling(run: Run) -> None:
    assert run().everywhere("BOTH AT CEILING")


def test_a_run_cut_at_a_tenth_of_its_length(run: Run) -> None:
    assert run("--set", "phases.copy.segments.0.steps=20").everywhere("STILL TRAINING")


def test_a_probe_that_nobody_learned(run: Run) -> None:
    said = run("--set", "phases.copy.segments.0.steps=2")
    assert said.everywhere("NEITHER LEARNED THE TASK")
    assert said.everywhere("the floor is")


def test_a_seventh_seed_added_after_a_verdict(run: Run) -> None:
    short = ("--set", "phases.copy.segments.0.steps=2")
    run(*short)
    said = run(*short, "--set", "seeds=[1, 2, 3, 4, 5, 6, 7]")
    assert said.everywhere("CHANGED AFTER LOOKING (seeds 5 → 7), UNDECLARED LOOK (2nd)")


class HalfFailing(InProcess):
    """Trains in this process, but for the first five seeds of one arm, which crash."""

    def send(self, order: RunOrder) -> None:
        if "cosine" in order.config["start"]["mechanism"] and order.config["seed"] <= 5:
            self.events.append(RunEvent(order.id, "failed", "out of memory"))
        else:
            super().send(order)


def test_half_of_an_arms_runs_failed_in_a_family_of_five(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attnlab.studies.run.execution.LocalWorkers", HalfFailing)
    rates = {"slow": 1e-3, "slower": 3e-4, "slowest": 1e-4, "fast": 2e-2}
    lines = "".join(
        f'{name} = {{ mechanism = "dot | softmax", set = {{ "optimizer.lr" = {lr} }} }}\n' for name, lr in rates.items()
    )
    text = STUDY.replace("[sizes.tiny]", f"{lines}\n[sizes.tiny]")
    said = run("--set", "phases.copy.segments.0.steps=2", "--set", f"seeds={list(range(1, 11))}", text=text)
    why = "0 of 10 runs of the baseline and 5 of 10 of the variant failed"
    assert said.everywhere(why)
    terminal = " ".join(said.places["terminal"].split())
    assert f"NOT COMPARABLE ({why})" in terminal


AGAIN = """\
import dataclasses
import torch
from attnlab import Weights, stage

@stage("softmax_again")
@dataclasses.dataclass(frozen=True)
class SoftmaxAgain(Weights):
    \"\"\"Softmax, rounded in another order.\"\"\"

    def __call__(self, scores, n, p):
        return torch.softmax(scores.double(), -1).to(scores.dtype)
"""


@pytest.mark.usefixtures("own_stages")
def test_a_baseline_against_itself_in_two_phases_and_two_sizes(run: Run, tmp_path: Path) -> None:
    plugin = tmp_path / "again.py"
    plugin.write_text(AGAIN, encoding="utf-8")
    start = STUDY.index("[sizes.tiny]"), STUDY.index("[data.copy]"), STUDY.index("[[phases]]")
    sizes, phase = STUDY[start[0] : start[1]], STUDY[start[2] :]
    text = STUDY.replace('cosine = "cosine(scale=8) | softmax"', 'again = "dot | softmax_again"')
    text = text.replace(sizes, sizes + sizes.replace("tiny", "wide").replace("n_embd = 32", "n_embd = 48"))
    text += phase.replace('name = "copy"', 'name = "longer"')
    text = text.replace("n_layer = 2", "n_layer = 1")
    steps = ("--set", "phases.copy.segments.0.steps=10", "--set", "phases.longer.segments.0.steps=15")
    said = run(*steps, "--plugin", str(plugin), text=text)
    lines = said.places["terminal"].splitlines()
    verdicts = [line for line in lines if re.match(r"(copy|longer) +(tiny|wide) +again", line)]
    assert len(verdicts) == 4
    assert not re.search("BETTER|WORSE|NOT COMPARABLE", "".join(verdicts)), verdicts
    assert said.everywhere("98.75 %")  # 95 % for the family of four


def test_minigpt_sharing_can_conclude(run: Run) -> None:
    fewer = ("--set", "seeds=[1, 2, 3, 4, 5]", "--set", 'only_arms=["separate", "share-qkv"]')
    said = run("--budget", "smoke", *fewer, recipe="minigpt-sharing")
    assert "not paired" not in said.places["terminal"]
    assert "NOT COMPARABLE" not in said.places["terminal"]
    assert said.everywhere("NEITHER LEARNED THE TASK")  # ten updates are fewer than a table of pairs of words needs
