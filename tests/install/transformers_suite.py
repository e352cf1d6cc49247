"""transformers' own model tests on models with a mechanism: a pytest plugin, and a program that compares.

    python tests/install/transformers_suite.py CHECKOUT [gpt2 bert …]

CHECKOUT is a clone of huggingface/transformers at the installed version, with the packages that its tests import. The
tests of each model run without a mechanism, then with each line of LINES in every model they build. The program prints
the tests that pass without and fail with a mechanism, and ends with status 1 if one of them is not in EXPECTED.
"""

import functools
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel

import attnlab
from attnlab.errors import InstallError
from attnlab.install import attention_layers

MODELS = ("gpt2", "bert", "roberta", "distilbert", "opt", "llama")
LINES = ("dot | softmax", "cosine | relu(divide=n) | bypass(alpha=0.5)")
LINE = os.environ.get("ATTNLAB_MECHANISM")

ASKS_FOR_PLAIN = "asks for 'eager' or 'sdpa' attention by name, which a model with a mechanism refuses"
READS_THE_FILE = "opens or replaces model.safetensors itself; with a mechanism the file is attnlab.safetensors"
EXPECTED = {
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


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say which models refused the mechanism."""
    for reason, count in REFUSED.most_common():
        terminalreporter.write_line(f"attnlab: refused {count} times: {reason}")


def run_tests(checkout: Path, model: str, line: str) -> set[str]:
    """Run the tests of one model with a mechanism, or without if the line is empty; return the names that pass."""
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    command = ["-m", "pytest", "-p", "transformers_suite", "-p", "no:cacheprovider", "-q", "-rA", "--tb=no"]
    done = subprocess.run(
        [sys.executable, *command, f"tests/models/{model}/test_modeling_{model}.py"],
        cwd=checkout, env=os.environ | {"ATTNLAB_MECHANISM": line, "PYTHONPATH": path}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    passed = {row.split()[1] for row in done.stdout.splitlines() if row.startswith("PASSED tests/")}
    if not passed:
        raise SystemExit(f"no test of {model} passed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return passed


def main(checkout: str, *models: str) -> int:
    """Compare the tests of each model without and with a mechanism; return 1 if an unexpected one fails."""
    surprises = 0
    for model in models or MODELS:
        plain = run_tests(Path(checkout), model, "")
        for line in LINES:
            lost = sorted(plain - run_tests(Path(checkout), model, line))
            print(f"{model}: '{line}' fails {len(lost)} of {len(plain)} tests that pass without a mechanism")
            for name in lost:
                reason = next((why for start, why in EXPECTED.items() if name.split("::")[-1].startswith(start)), None)
                surprises += reason is None
                print(f"  {name}: {reason or 'NOT EXPECTED'}")
    return int(surprises > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
