"""transformers' own model tests on models with a mechanism: a pytest plugin, and a program that compares.

    python tests/install/transformers_suite.py CHECKOUT [gpt2 bert …]

CHECKOUT is a clone of huggingface/transformers at the installed version, with the packages that its tests import. The
tests of the models run without a mechanism, then with each line of LINES in every model they build. The program prints
the tests that pass without and fail with a mechanism, and ends with status 1 if one of them is not in EXPECTED. The
output of pytest is in CHECKOUT/*.log, the outcomes are in CHECKOUT/*.outcomes.
"""

import functools
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import PreTrainedModel

import attnlab
from attnlab.errors import InstallError
from attnlab.install import attention_layers

MODELS = ("gpt2", "bert", "roberta", "distilbert", "opt", "llama")
LINES = ("dot | softmax", "cosine | relu(divide=n) | bypass(alpha=0.5)")
LINE = os.environ.get("ATTNLAB_MECHANISM")
OUTCOMES = os.environ.get("ATTNLAB_OUTCOMES", os.devnull)
"""The file that the plugin appends the outcome of each test to, as soon as it is known."""

ASKS_FOR_PLAIN = "asks for 'eager' or 'sdpa' attention by name, which a model with a mechanism refuses"
READS_THE_FILE = "opens or replaces model.safetensors itself; with a mechanism the file is attnlab.safetensors"
EXPECTED = {
    "test_assisted_decoding_matches_greedy_search": ASKS_FOR_PLAIN,
    "test_can_set_attention_dynamically": ASKS_FOR_PLAIN,
    "test_eager_matches_sdpa_inference": ASKS_FOR_PLAIN,
    "test_eager_padding_matches_padding_free_with_position_ids": ASKS_FOR_PLAIN,
    "test_sdpa_padding_matches_padding_free_with_position_ids": ASKS_FOR_PLAIN,
    "test_gpt2_sdpa_matches_eager_with_scaling_configs": ASKS_FOR_PLAIN,
    "test_sdpa_can_dispatch_non_composite_models": ASKS_FOR_PLAIN,
    "test_load_save_without_tied_weights": READS_THE_FILE,
    "test_model_weights_reload_no_missing_tied_weights": READS_THE_FILE,
}
"""The beginnings of the names of tests that fail with any mechanism, and why; docs/install.md has the same list."""

REFUSED: Counter[str] = Counter()
DEPTH = [0]
"""How many constructors and from_pretrained calls are running; a mechanism is installed after the outermost."""


def _install(model: Any) -> None:
    if not isinstance(model, PreTrainedModel) or next(attention_layers(model), None) is not None:
        return
    try:
        with torch.device("cpu"):
            attnlab.install(model, str(LINE))
    except InstallError as error:
        REFUSED[f"{type(model).__name__}: {error}"] += 1


def _follow(function: Any, is_constructor: bool) -> Any:
    """Install a mechanism in what a constructor has built, or from_pretrained has read."""

    @functools.wraps(function)
    def wrapper(first: Any, *given: Any, **options: Any) -> Any:
        DEPTH[0] += 1
        try:
            result = function(first, *given, **options)
        finally:
            DEPTH[0] -= 1
        if DEPTH[0] == 0:
            _install(first if is_constructor else result[0] if isinstance(result, tuple) else result)
        return result

    return wrapper


def _follow_constructor(model_class: Any) -> None:
    if "__init__" in vars(model_class):
        model_class.__init__ = _follow(model_class.__init__, is_constructor=True)


def _list_subclasses(parent: Any) -> list[Any]:
    return [parent, *(below for child in parent.__subclasses__() for below in _list_subclasses(child))]


def follow_every_model() -> None:
    """Install LINE in every model that is built or read from now on."""
    base: Any = PreTrainedModel
    for existing in _list_subclasses(base)[1:]:
        _follow_constructor(existing)
    define, read = base.__init_subclass__.__func__, base.from_pretrained.__func__

    def define_and_follow(cls: Any, /, **options: Any) -> None:
        define(cls, **options)
        _follow_constructor(cls)

    base.__init_subclass__ = classmethod(define_and_follow)
    base.from_pretrained = classmethod(_follow(read, is_constructor=False))


def pytest_configure() -> None:
    """Follow the models of a test session, if there is a line."""
    if LINE:
        follow_every_model()


def pytest_runtest_logreport(report: Any) -> None:
    """Note the outcome of a test: passed, failed or skipped."""
    if report.when == "call" or report.outcome != "passed":
        with open(OUTCOMES, "a", encoding="utf-8") as file:
            file.write(f"{report.outcome} {report.nodeid}\n")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say which models refused the mechanism."""
    for reason, count in REFUSED.most_common():
        terminalreporter.write_line(f"attnlab: refused {count} times: {reason}")


def run_tests(checkout: Path, tests: Iterable[str], line: str) -> dict[str, str]:
    """Run tests with a mechanism, or without if the line is empty; return the outcome of each."""
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    options = ["-p", "transformers_suite", "-p", "no:cacheprovider", "-q", "--tb=short", "--durations=10"]
    name = re.sub(r"\W+", "-", line) if line else "plain"
    log, found = checkout / f"{name}.log", checkout / f"{name}.outcomes"
    found.write_text("", encoding="utf-8")
    with log.open("w", encoding="utf-8") as file:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options, *tests], cwd=checkout, stdout=file, stderr=file, check=False,
            env=os.environ | {"ATTNLAB_MECHANISM": line, "ATTNLAB_OUTCOMES": str(found.absolute()), "PYTHONPATH": path},
        )  # fmt: skip
    if done.returncode not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        raise SystemExit(f"the tests did not run to their end (status {done.returncode}): see '{log}'")
    return _read_outcomes(found)


def _read_outcomes(file: Path) -> dict[str, str]:
    """Return the outcome of each test; one with subtests has a line for each of them, and fails if one fails."""
    outcomes: dict[str, str] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        outcome, test = line.split(" ", 1)
        if outcomes.get(test) != "failed":
            outcomes[test] = outcome
    return outcomes


def compare(line: str, outcomes: Mapping[str, str], plain: Mapping[str, str]) -> int:
    """Print the tests that pass without and not with a mechanism; return how many of them are not expected."""
    sound = [test for test, outcome in plain.items() if outcome == "passed"]
    reasons = {test: _find_reason(test) for test in sound if outcomes.get(test) != "passed"}
    num_surprises = sum(reason is None for reason in reasons.values())
    print(
        f"'{line}': of {len(sound)} tests that pass without a mechanism {len(sound) - len(reasons)} pass, "
        f"{len(reasons) - num_surprises} fail as expected, {num_surprises} unexpectedly"
    )
    for test, reason in reasons.items():
        print(f"  {test}: {reason or 'NOT EXPECTED'}")
    return num_surprises


def _find_reason(test: str) -> str | None:
    return next((reason for start, reason in EXPECTED.items() if test.split("::")[-1].startswith(start)), None)


def main(checkout: str, *models: str) -> int:
    """Run the tests of each model without and with each mechanism; return 1 if one fails unexpectedly."""
    files = [f"tests/models/{model}/test_modeling_{model}.py" for model in models or MODELS]
    plain = run_tests(Path(checkout), files, "")
    return int(sum(compare(line, run_tests(Path(checkout), files, line), plain) for line in LINES) > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
