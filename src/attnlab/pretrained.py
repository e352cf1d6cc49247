"""Load what `save_pretrained` wrote: code that comes with a checkpoint is never run, and pickles are never read."""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from logging import ERROR
from pathlib import Path
from typing import Any

from attnlab.errors import AttnlabError, PretrainedError
from attnlab.hub import check_available, check_folder_or_name, explain_assumption
from attnlab.inputs import check_regular, expand_path

MAX_LAYERS, MAX_SIZE = 10_000, 2**31
"""A config may ask for at most so many layers, and for no larger size: transformers would build without an end."""


def load_pretrained(kind: Any, name: str | Path, **options: Any) -> Any:
    """Call `from_pretrained` of a class of transformers, with `trust_remote_code=False` and safetensors alone.

    transformers, safetensors, tokenizers and the hub raise errors of many kinds for a folder that is not whole. Every
    one becomes a PretrainedError in one sentence.
    """
    safe: dict[str, Any] = {"trust_remote_code": False}
    if hasattr(kind, "from_config") or hasattr(kind, "_from_config"):  # a model, not a config or a tokenizer
        safe["use_safetensors"] = True
    try:
        (check_folder_or_name if options.get("local_files_only") else check_available)(name)
        _check_files(expand_path(name))
        if safe.get("use_safetensors"):
            check_config(options.get("config") or _read_config(name, options))
        with _silence_hub():
            return kind.from_pretrained(str(name), **safe, **options)
    except AttnlabError as error:
        raise PretrainedError(str(error)) from error
    except Exception as error:
        lines = str(error).strip().splitlines()
        reason = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
        reason = reason.rstrip(".;")
        assumption = explain_assumption(name)
        raise PretrainedError(f"{assumption}. {reason}" if assumption else reason) from error


@contextmanager
def _silence_hub() -> Iterator[None]:
    """Keep the hub's client from writing a line for each try to connect; the error says what failed."""
    from huggingface_hub.utils import logging

    verbosity = logging.get_verbosity()
    logging.set_verbosity(ERROR)
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)


def check_config(config: Any) -> None:
    """Raise a ValueError for a config with NaN, or one that asks for more layers or larger sizes than any model has."""
    for name, value in config.to_dict().items():
        if isinstance(value, float) and math.isnan(value):
            raise ValueError(f"its config has {name} = nan, which is no number")
        limit = MAX_LAYERS if "layer" in name else MAX_SIZE
        if isinstance(value, int) and value > limit:
            shown = str(value) if value < 10**15 else f"{str(value)[:12]}…"
            raise ValueError(f"its config has {name} = {shown}, and no model has more than {limit:,}")


def _check_files(folder: Path) -> None:
    for file in folder.iterdir() if folder.is_dir() else ():
        check_regular(file)


def _read_config(name: str | Path, options: Mapping[str, Any]) -> Any:
    # Imported here because transformers takes seconds, and --help must not take them.
    from transformers import AutoConfig

    given = {key: options[key] for key in ("local_files_only", "revision") if key in options}
    with _silence_hub():
        return AutoConfig.from_pretrained(str(name), trust_remote_code=False, **given)
