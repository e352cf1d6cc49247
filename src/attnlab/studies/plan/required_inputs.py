"""What a study takes from elsewhere: data, checkpoints, tokenizers; all that is missing is one error that says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from transformers import AutoConfig

from attnlab.data import load_tokenizer
from attnlab.errors import DataError, StudyError
from attnlab.training.build import TRAINED
from attnlab.training.spec import Source
from attnlab.training.weights import quiet

from ..file.design import Design, Size
from .identity import contents_of_size, contents_of_source

Contents = dict[str, dict[str, str]]
"""Hashes of what is in files, by name and part."""


def contents_of(study: Design, found: Mapping[str, Source], taken: Mapping[str, str]) -> tuple[Contents, Contents]:
    """Return the hashes of the data and of the starts of a study. taken: the phase that takes each source."""
    missing: list[str] = []

    def looked_for(what: str, advice: str, look: Callable[[], dict[str, str]]) -> dict[str, str]:
        try:
            return look()
        except (DataError, StudyError, OSError, ValueError) as error:
            missing.append(f"{what}: {str(error).splitlines()[0].rstrip('.;')}; {advice}")
            return {}

    data = {
        name: looked_for(
            f"the data '{name}' of phase '{phase}' ({found[name].train})",
            f"say where it is on this machine: --data {name}=PATH",
            partial(contents_of_source, found[name]),
        )
        for name, phase in taken.items()
    }
    starts = {
        name: looked_for(
            f"the model of size '{name}'",
            f"give a folder: --set sizes.{name}.checkpoint=PATH or --set sizes.{name}.tokenizer=PATH",
            partial(contents_of_start, size),
        )
        for name, size in study.sizes.items()
    }
    if missing:
        raise StudyError("\n".join(["not everything that the study takes is here:", *missing]))
    return data, starts


def contents_of_start(size: Size) -> dict[str, str]:
    """Return the hashes of the files a model starts from; what cannot be opened is an error now, not in every run."""
    contents = contents_of_size(size)
    with quiet():
        if size.tokenizer is not None and size.tokenizer.partition(":")[0] not in TRAINED:
            load_tokenizer(size.tokenizer)
        if size.checkpoint is not None and "checkpoint" not in contents:
            AutoConfig.from_pretrained(size.checkpoint)
            if size.tokenizer is None:
                load_tokenizer(size.checkpoint)
    return contents
