"""A study, a run, a file and a list of numbers become results that can be compared."""

import json
from pathlib import Path

import pytest

from attnlab.errors import AttnlabError
from attnlab.studies.answers.result_source import flatten_settings, read_source
from tests.studies.folders import BETTER, DOT, write_folder


def test_a_study(tmp_path: Path) -> None:
    source = read_source(str(write_folder(tmp_path / "study", {"dot": DOT, "better": BETTER})), 1)
    assert (source.kind, source.arms, source.smallest) == ("a study", ["better", "dot"], {"accuracy": 0.02})
    assert [cell.value for cell in source.cells if cell.arm == "dot"] == list(DOT)
    assert source.settings["dot", "recall, tiny", "1"]["start.mechanism"] == "dot | softmax"


def test_lists() -> None:
    source = read_source("base=0.5, nan,0.7", 1)
    assert (source.name, [cell.value for cell in source.cells]) == ("base", [0.5, None, 0.7])
    assert read_source("0.5,0.6", 2).name == "list 2"


def test_a_run(tmp_path: Path) -> None:
    last = {"primary": "accuracy", "figures": {"accuracy": 0.75}}
    files = {
        "result.json": {"last": last},
        "config.json": {"seed": 3, "clip": 1.0},
        "pairing.json": {"evaluation": "e"},
    }
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content), encoding="utf-8")
    source = read_source(str(tmp_path), 1)
    assert [(cell.seed, cell.metric, cell.value) for cell in source.cells] == [("3", "accuracy", 0.75)]


def test_settings_by_path() -> None:
    config = {"seed": 1, "data": {"train": "x"}, "segments": [{"steps": 3}], "betas": [0.9, 0.95], "name": "adam"}
    assert flatten_settings(config) == {"segments.1.steps": "3", "betas": "[0.9, 0.95]", "name": "adam"}


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("EMPTY", "holds no study"), ("UNFINISHED", "8 of 10 runs ended; it is compared when all have"),
        ("nowhere.csv", "cannot read"), ("0.5", "cannot read"),
        ("a=1,x,3", "'x' in the list 'a=1,x,3' is not a number"), ("1,,3", "'' in the list"),
        ("base=1,diverged", "a run that failed is nan"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared(what: str, message: str, tmp_path: Path) -> None:
    places = {"EMPTY": str(tmp_path)}
    if what == "UNFINISHED":
        places[what] = str(write_folder(tmp_path / "study", {"dot": DOT, "better": [0.6, None, 0.61]}))
    with pytest.raises(AttnlabError, match=message):
        read_source(places.get(what, what), 1)


def test_a_folder_of_lm_eval_is_read_as_one_arm(tmp_path: Path) -> None:
    for seed in (1, 2):
        content = {
            "results": {"piqa": {"acc,none": 0.6 + seed / 100, "acc_stderr,none": 0.01}},
            "config": {"model_args": f"pretrained=out/base-seed{seed}", "random_seed": 0},
        }
        folder = tmp_path / "results" / f"base-seed{seed}"
        folder.mkdir(parents=True)
        (folder / f"results_{seed}.json").write_text(json.dumps(content), encoding="utf-8")
    source = read_source(str(tmp_path / "results"), 1)
    assert source.kind == "a folder of lm-eval's results"
    assert [(cell.arm, cell.group, cell.seed, cell.value) for cell in source.cells] == [
        ("out/base", "piqa", "1", 0.61), ("out/base", "piqa", "2", 0.62),
    ]  # fmt: skip
