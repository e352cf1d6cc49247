"""Fair comparisons in studies that train for real and learn: what a search, a match, a target and a trend say.

They take about twenty minutes: `make soak` runs them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from attnlab.studies.file.reading import read_design
from attnlab.studies.file.recipes import find_study
from attnlab.studies.study import Conclusion, Study
from tests.sampling import IS_SOAK

from .samples import quiet

pytestmark = [pytest.mark.usefixtures("here"), pytest.mark.skipif(not IS_SOAK, reason="twenty minutes: make soak")]

TEXT = """\
name = "fair"
baseline = "dot"
seeds = [1, 2, 3, 4, 5]
{top}

[arms]
dot = "dot | softmax"
{arms}

{sizes}

[data.text]
train = "embedded:pydoc?paragraphs=1"
{data}

[[phases]]
name = "text"
task = "clm"
task_settings = {{ max_len = 32 }}
data = "text"
smallest = 5.0
precision = "fp32"
evaluate_every = 50
{phase}
[[phases.segments]]
steps = 400
batch = 24
[phases.optimizer]
lr = 6e-3
betas = [0.9, 0.95]
[phases.schedule]
kind = "cosine"
"""

SIZE = """\
[sizes.w{width}]
architecture = "gpt2"
tokenizer = "wordpiece:100"
config = {{ n_layer = 2, n_embd = {width}, n_head = {heads}, n_inner = {inner}, n_positions = 64, \
initializer_range = 0.1, resid_pdrop = 0.0, embd_pdrop = 0.0, attn_pdrop = 0.0 }}
"""


def run_text(
    folder: Path, *, arms: str, top: str = "", phase: str = "", data: str = "", widths: tuple[int, ...] = (64,)
) -> Conclusion:
    """Train arms on Python's documentation, long enough for the baseline to pass its floor."""
    sizes = "\n".join(SIZE.format(width=width, heads=width // 16, inner=2 * width) for width in widths)
    file = folder / "study.toml"
    file.write_text(TEXT.format(top=top, arms=arms, phase=phase, data=data, sizes=sizes), encoding="utf-8")
    return Study.load(file).run(folder / "out", workers=2, say=quiet)


def run_recipe(folder: Path, **settings: Any) -> str:
    """Run the recipe learning-rates with changed settings; return the verdict of its arm."""
    design = read_design(find_study("learning-rates"), "laptop", settings)
    (answer,) = Study(design).run(folder, workers=2, say=quiet).answers
    return str(answer.verdict)


def test_an_arm_that_wins_at_the_shared_rate_is_not_better_once_each_has_its_own(tmp_path: Path) -> None:
    assert run_recipe(tmp_path / "shared", search=None).startswith("BETTER BY AT LEAST 0.1 AT SHARED SETTINGS")
    assert "BETTER" not in run_recipe(tmp_path / "tuned")


def test_a_best_rate_at_the_edge_of_the_grid_is_said_and_the_grid_is_extended(tmp_path: Path) -> None:
    low = {"optimizer.lr": [2e-4, 6e-4]}
    assert run_recipe(tmp_path / "edge", **{"search.over": low}).endswith("BASELINE AT THE EDGE OF ITS GRID")
    extended = run_recipe(tmp_path / "extended", **{"search.over": low, "search.extend": True})
    assert "EDGE" not in extended
    assert "BETTER" not in extended


def test_halving_chooses_the_rates_of_the_whole_grid_at_under_half_the_cost(tmp_path: Path) -> None:
    grid = "over = { 'optimizer.lr' = [6e-5, 2e-4, 6e-4, 2e-3, 6e-3, 2e-2, 6e-2, 2e-1, 6e-1] }"
    chosen, steps = [], []
    for name, halve in (("grid", ""), ("halved", "halve = true")):
        (tmp_path / name).mkdir()
        search = f"[search]\n{grid}\nrepeat = 'once'\n{halve}"
        (answer,) = run_text(
            tmp_path / name, arms='relu = "cosine | relu(divide=n)"', top=search, data="num_tune = 200"
        ).answers
        chosen.append([note for note in answer.notes if note.startswith("chosen for")])
        configs = [json.loads(file.read_text("utf-8")) for file in (tmp_path / name / "out").glob("runs/*/config.json")]
        # All runs of the study itself, which both have, train for as long.
        steps.append(sum(config["segments"][0]["steps"] for config in configs) - 2 * 5 * 400)
    assert chosen[0] == chosen[1] != []
    assert steps[1] < steps[0] / 2


def test_a_target_that_one_arm_reaches(tmp_path: Path) -> None:
    conclusion = run_text(tmp_path, arms='hard = "dot | argmax"', phase="target = 12.0")
    found = {one.arm: one.verdict for one in conclusion.targets}
    assert found == {"dot": "REACHES 12", "hard": "DOES NOT REACH 12"}


def test_arms_at_equal_operations_and_at_equal_parameters(tmp_path: Path) -> None:
    linear = 'linear = "dot | identity(divide=sum) | feature(elu1)"'
    for match, arms in (("operations", linear), ("parameters", 'additive = "additive | softmax"')):
        (tmp_path / match).mkdir()
        (answer,) = run_text(tmp_path / match, arms=arms, top=f'match = "{match}"').answers
        assert "NEITHER LEARNED" not in str(answer.verdict)
        assert any(match in note and " and dot " in note for note in answer.notes), answer.notes


def test_a_trend_over_three_sizes_and_a_gap_over_three_horizons(tmp_path: Path) -> None:
    relu = 'relu = "cosine | relu(divide=n)"'
    (tmp_path / "sizes").mkdir()
    trend = run_text(tmp_path / "sizes", arms=relu, top='[trend]\nover = "parameters"', widths=(32, 64, 96))
    words = {"SHRINKS WITH SIZE", "GROWS WITH SIZE", "NO TREND WORTH HAVING", "TREND INCONCLUSIVE"}
    assert [one.verdict in words for one in trend.joint_answers] == [True]
    (tmp_path / "horizons").mkdir()
    gap = run_text(tmp_path / "horizons", arms=relu, top="horizons = [200, 400, 800]")
    assert [one.verdict for one in gap.joint_answers] == ["GAP OPENING"]
