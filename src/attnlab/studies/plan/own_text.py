"""Text that is given in place of a study's own: what is held out of it, and that it is packed into full rows."""

from collections.abc import Iterable, Mapping

from attnlab.data.sources.holdout import HeldOut, hold_out
from attnlab.inputs import expand_path
from attnlab.training.spec import LANGUAGE, DataSource

from ..file.design import Design


def replace_source(old: DataSource, part: str, place: str, *, is_text_alone: bool) -> DataSource:
    """Return a source with a path in place of its own, or of one of its parts.

    is_text_alone: the path is a text without another one to evaluate on, so an embedded one does not belong to it.
    """
    if part == "train":
        is_left_out = is_text_alone and (old.dev or "").startswith("embedded:")
        return old.model_copy(update={"train": place, **({"dev": None} if is_left_out else {})})
    return old.model_copy(update={part: place} if part else {"train": place, "dev": None})


def drop_num_dev(study: Design, given: Iterable[str], assigned: Iterable[str]) -> Design:
    """Return a study that evaluates on the whole of a given text: `num_dev` was chosen for the text it replaces."""
    names = {key.rpartition(".")[0] if key.endswith((".train", ".dev")) else key for key in given}
    kept = {key.split(".")[1] for key in assigned if key.startswith("data.") and key.endswith(".num_dev")}
    data = {
        name: source.model_copy(update={"num_dev": None})
        for name, source in study.data.items()
        if name in names - kept and (f"{name}.train" not in given or not source.dev or ":" in source.dev)
    }
    return study.model_copy(update={"data": {**study.data, **data}}) if data else study


def list_text_data(study: Design) -> set[str]:
    """Return the names of the data that only language models read."""
    by_data: dict[str, set[str]] = {}
    for phase in study.phases:
        by_data.setdefault(phase.data, set()).add(phase.task.lower())
    return {name for name, tasks in by_data.items() if tasks <= set(LANGUAGE)}


def find_held_out(study: Design, sources: Mapping[str, DataSource]) -> dict[str, HeldOut]:
    """Return what is held out of each file that language models train on without another text to evaluate on."""
    return {
        name: hold_out(sources[name].train, sources[name].column, sources[name].unit)
        for name in sorted(list_text_data(study) & sources.keys())
        if sources[name].dev is None and expand_path(sources[name].train).is_file()
    }


def use_own_text(study: Design, sources: Mapping[str, DataSource], given: Iterable[str]) -> dict[str, DataSource]:
    """Return the sources with their held-out parts, and texts that were given packed into full rows."""
    located = dict(sources)
    for name in list_text_data(study) & {key.rpartition(".")[0] or key for key in given} & sources.keys():
        located[name] = located[name].choose_packing()
    for name, parts in find_held_out(study, located).items():
        found = {"train": parts.train, "dev": parts.dev, "column": None, "unit": "line"}
        located[name] = located[name].model_copy(update=found)
    return located
