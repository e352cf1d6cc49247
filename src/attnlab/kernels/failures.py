"""Errors that are raised inside a user's stage: the stage is named, and the original is kept as the cause. A stage that
changes its input in place raises none of its own, or one of autograd later, so it is refused here."""

import functools
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import ParamSpec, TypeVar

import torch

from attnlab.errors import AttnlabError, MechanismError, closest
from attnlab.mechanisms import Dims, Stage

P = ParamSpec("P")
R = TypeVar("R")

OWN = "attnlab."
"""Modules whose stages are attnlab's: what they raise is a fault of attnlab, and is shown as it is."""


def name_failing_stage(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function name the user's stage in which it failed."""

    @functools.wraps(function)
    def call(*args: P.args, **options: P.kwargs) -> R:
        if torch.compiler.is_compiling():
            return function(*args, **options)
        try:
            return function(*args, **options)
        except (AttnlabError, Warning, torch.OutOfMemoryError):
            raise
        except Exception as error:  # a stage is the user's and may raise anything
            failed = _find_stage(error.__traceback__)
            if failed is None:
                raise
            stage, place = failed
            hint = _explain_missing_parameter(stage, error)
            raise MechanismError(f"'{stage}' raised {type(error).__name__}: {error} (in {place}){hint}") from error

    return call


def call_stage(stage: Stage, method: Callable[P, R], *args: P.args, **options: P.kwargs) -> R:
    """Call a stage, or a method of it; refuse one of the user that changes a tensor it is given."""
    if type(stage).__module__.startswith(OWN) or torch.compiler.is_compiling():
        return method(*args, **options)
    given = [tensor for value in (*args, *options.values()) for tensor in _list_tensors(value)]
    versions = [tensor._version for tensor in given]
    result = method(*args, **options)
    if versions != [tensor._version for tensor in given]:
        raise MechanismError(
            f"'{stage}' changed a tensor that it was given, in place, as scores.add_(1), scores += 1 and "
            "scores[…] = 0 do; other stages and the backward pass still need it. Write scores + 1, or "
            "scores.masked_fill(…), or begin with scores.clone()"
        )
    return result


def _list_tensors(value: object) -> list[torch.Tensor]:
    tensors = value.values() if isinstance(value, Mapping) else [value]
    # Tensors of inference mode count no changes.
    return [each for each in tensors if isinstance(each, torch.Tensor) and not each.is_inference()]


def _explain_missing_parameter(stage: Stage, error: Exception) -> str:
    """Return which parameters a stage declares, if it read one that it does not; else an empty string."""
    if not isinstance(error, KeyError) or len(error.args) != 1 or not isinstance(error.args[0], str):
        return ""
    try:
        declared = list(stage.parameters(Dims(2, 4, 4)))
    except Exception:  # a declaration may not know these sizes
        return ""
    if (name := error.args[0]) in declared:
        return ""
    names = f"declares {', '.join(declared)}{closest(name, declared)}" if declared else "declares no parameters"
    return f"; `parameters` of the stage {names}"


def _find_stage(traceback: TracebackType | None) -> tuple[Stage, str] | None:
    """Return the innermost stage of the user among the frames of an error, and the place in its code."""
    failed = None
    while traceback is not None:
        frame, stage = traceback.tb_frame, traceback.tb_frame.f_locals.get("self")
        if isinstance(stage, Stage) and not frame.f_globals.get("__name__", "").startswith(OWN):
            code = frame.f_code
            failed = stage, f"{code.co_name}, line {traceback.tb_lineno} of {code.co_filename}"
        traceback = traceback.tb_next
    return failed
