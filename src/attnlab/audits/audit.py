"""`audit`: put every check to a mechanism or a model, and keep the findings."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from time import perf_counter
from typing import TYPE_CHECKING

import torch
from torch import nn

from attnlab.errors import AttnlabWarning, RequestError
from attnlab.kernels.measure import one_thread
from attnlab.mechanisms import Mechanism

from . import (  # noqa: F401  (each registers its check)
    cost,
    equivalences,
    gradients,
    leak,
    magnitude,
    numerics,
    padding,
    prefix,
    random_tokens,
    value_path,
    weights,
)
from .check import Check, Kind, known_checks
from .finding import Audit, Findings, UnknownCheckError, letters, matching
from .subject import Subject

if TYPE_CHECKING:
    from .in_model import ModelSubject

Progress = Callable[[str], None]


def audit(
    subject: str | Mechanism | nn.Module,
    *,
    causal: bool | None = None,
    checks: Sequence[str] | None = None,
    train: bool = False,
    seed: int = 0,
    progress: Progress | None = None,
) -> Audit:
    """Put every check to a mechanism, or to a Hugging Face model, and return the findings.

    causal: whether no token may see a later one. Left out, a mechanism is asked both ways, and a model as its
    attention says of itself.
    checks: names, or parts of names, of the checks to put; all of them if left out.
    train: also train a tiny model on random tokens, which takes about a minute.
    progress: called with the name of each check before it is put.
    """
    if causal is not None and not isinstance(causal, bool):
        raise RequestError(f"causal must be True, False or None, not {causal!r}")
    start = perf_counter()
    found = []
    asked, kind = under_audit(subject, causal, seed)
    # Short sequences: two threads would wait for each other more than they compute.
    threads = one_thread() if kind == "mechanism" else nullcontext()
    with threads, plain_autograd(), warnings.catch_warnings():
        # Checks go to extremes on purpose, where a kernel says that it is slower than it could be.
        warnings.simplefilter("ignore", AttnlabWarning)
        for check in chosen(kind, checks, train):
            if progress is not None:
                progress(check.name)
            finding = check(asked)
            if finding is not None:
                found.append(finding)
    return Audit(asked.title, asked.causal, Findings(found), perf_counter() - start)


@contextmanager
def plain_autograd() -> Iterator[None]:
    """Let gradients be computed and numbers keep their precision, whatever the caller has switched; leave its draws."""
    with ExitStack() as stack:
        stack.enter_context(torch.random.fork_rng(devices=[]))
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        for device in ("cpu", "cuda"):
            if torch.is_autocast_enabled(device):
                stack.enter_context(torch.autocast(device, enabled=False))
        yield


def under_audit(
    subject: str | Mechanism | nn.Module, causal: bool | None, seed: int
) -> tuple[Subject | ModelSubject, Kind]:
    """Prepare what is audited."""
    if isinstance(subject, nn.Module):
        # transformers takes seconds to import, and a mechanism alone does not need it.
        from .in_model import ModelSubject

        return ModelSubject.of(subject, causal, seed), "model"
    return Subject.of(Mechanism.parse(subject), causal, seed), "mechanism"


def chosen(kind: Kind, names: Sequence[str] | None, train: bool) -> list[Check]:
    """Return the checks to put: those named, or all but the long ones."""
    known = known_checks(kind)
    if names is None:
        return [check for check in known.values() if train or not check.asked]
    if isinstance(names, str):
        names = [names]
    if not names:
        raise RequestError("an audit without a check would pass anything; leave checks out for all of them")
    wanted = {find(name, kind) for name in names}
    return [check for name, check in known.items() if name in wanted or (train and check.asked)]


def find(name: str, kind: Kind) -> str:
    """Return the check that is meant, and say so where it is one of the other kind."""
    try:
        return matching(name, known_checks(kind))
    except UnknownCheckError:
        other: Kind = "model" if kind == "mechanism" else "mechanism"
        if any(letters(name) and letters(name) in letters(there) for there in known_checks(other)):
            raise RequestError(f"'{name}' is a check of a {other}, not of a {kind}") from None
        raise
