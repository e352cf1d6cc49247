"""`audit`: run every check on a mechanism or a model and return the findings."""

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from time import perf_counter
from typing import Any

import torch
from torch import nn

from attnlab.check_names import UnknownCheckError, find_check, match_name
from attnlab.errors import AttnlabWarning, MechanismError, RequestError
from attnlab.inputs import expand_path
from attnlab.kernels.measure import one_thread
from attnlab.mechanisms import LayeredMechanism, Line, Mechanism, parse_line

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
from .by_layer import merge_audits
from .check import CHECKS, Check, SubjectKind, known_checks
from .finding import Audit, Findings
from .stage_faults import INDEPENDENT, NonFinite, find_non_finite
from .subject import Subject


def audit(
    subject: str | Line | nn.Module, *, causal: bool | None = None, checks: Sequence[str] | None = None,
    train: bool = False, seed: int = 0, progress: Callable[[str], None] | None = None,
) -> Audit:  # fmt: skip
    """Run every check on a mechanism, or on a Hugging Face model, and return the findings.

    Of a line by layer each mechanism is audited, and the worst finding of each check is returned. A mixer is audited in
    a tiny GPT-2, or with causal=False in a tiny BERT.

    causal: whether no token may see a later one. If you omit it, a mechanism is audited with and without a causal
    mask, and a model according to its own `is_causal`.
    checks: names, or parts of names, of the checks to run; by default all.
    train: also train a tiny model on random tokens, which takes about a minute.
    progress: called with the name of each check before it runs.
    """
    if causal is not None and not isinstance(causal, bool):
        raise RequestError(f"causal must be True, False or None, not {causal!r}")
    line = None if isinstance(subject, nn.Module) else parse_subject(subject)
    if isinstance(line, LayeredMechanism):
        options: Any = {"causal": causal, "checks": checks, "train": train, "seed": seed, "progress": progress}
        return merge_audits(line, {mechanism: audit(mechanism, **options) for mechanism in line.distinct})
    if line is not None and line.mixer is not None:
        # transformers takes seconds to import, and other mechanisms do not need it.
        from .in_model.tiny import build_with_mixer

        subject = build_with_mixer(line, causal is not False, seed)
        checks = _drop_checks_of_pairs(line, checks)
    start = perf_counter()
    findings = []
    kind: SubjectKind = "model" if isinstance(subject, nn.Module) else "mechanism"
    audited: Any
    if isinstance(subject, nn.Module):
        # transformers takes seconds to import, and a mechanism alone does not need it.
        from .in_model import ModelSubject

        audited = ModelSubject.create(subject, causal, seed)
    elif line is not None:
        audited = Subject.create(line, causal, seed)
    # Sequences are short: with several threads, synchronization takes longer than computing.
    threads = one_thread() if kind == "mechanism" else nullcontext()
    with threads, _default_autograd(), warnings.catch_warnings():
        # Checks use extreme inputs on purpose, for which a kernel may warn that it is slow.
        warnings.simplefilter("ignore", AttnlabWarning)
        chosen = choose_checks(kind, checks, train)
        broken = None
        if any(check.kind not in INDEPENDENT for check in chosen):
            broken = _find_non_finite(audited)
        if broken is not None:
            # The cause of all the others comes first.
            chosen.sort(key=lambda check: check.kind != "numerics")
        for check in chosen:
            if progress is not None:
                progress(check.name)
            is_void = broken is not None and check.kind not in INDEPENDENT
            finding = broken.make_finding(check, audited) if broken and is_void else check(audited)
            if finding is not None:
                findings.append(finding)
    return Audit(audited.title, audited.causal, Findings(findings), perf_counter() - start)


def parse_subject(subject: str | Line) -> Line:
    """Read the line of an audit; the error for a model's folder says how its model is audited."""
    try:
        return parse_line(subject)
    except MechanismError as error:
        if isinstance(subject, str | os.PathLike) and expand_path(subject).is_dir():
            raise RequestError(
                f"'{subject}' is a folder, and an audit takes a line or a model; to audit the model in it: "
                f"attnlab.audit(attnlab.load({str(subject)!r})), or attnlab audit --model {subject}"
            ) from error
        raise


def _find_non_finite(audited: Any) -> NonFinite | None:
    """Return what is not finite of the outputs for ordinary inputs, with the stage it comes from if one is known."""
    if isinstance(audited, Subject):
        return find_non_finite(audited)
    num_broken, num_outputs = audited.count_non_finite()
    if not num_broken:
        return None
    lines = () if audited.mechanism is None else audited.mechanism.distinct
    causes = (find_non_finite(Subject.create(each, audited.causal)) for each in lines if each.mixer is None)
    stage = next((cause.stage for cause in causes if cause is not None), "")
    where = stage or audited.locate_fault("its weights, or what it computes")
    return NonFinite(num_broken, num_outputs, stage, where)


@contextmanager
def _default_autograd() -> Iterator[None]:
    """Enable gradients and disable autocast, whatever the caller has set; leave the caller's random state unchanged."""
    with ExitStack() as stack:
        stack.enter_context(torch.random.fork_rng(devices=[]))
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        for device in ("cpu", "cuda"):
            if torch.is_autocast_enabled(device):
                stack.enter_context(torch.autocast(device, enabled=False))
        yield


def choose_checks(kind: SubjectKind, names: Sequence[str] | None, train: bool) -> list[Check]:
    """Return the checks to run: those named, or all but the slow ones."""
    known = known_checks(kind)
    if names is None:
        return [check for check in known.values() if train or not check.is_slow]
    if isinstance(names, str):
        names = [names]
    if not names:
        raise RequestError("an audit without a check would pass anything; omit checks to run all of them")
    registered = {str(each): list(known_checks(each)) for each in CHECKS}
    chosen = {find_check(name, kind, registered) for name in names}
    return [check for name, check in known.items() if name in chosen or (train and check.is_slow)]


def _drop_checks_of_pairs(mechanism: Mechanism, names: Sequence[str] | None) -> Sequence[str] | None:
    """Return the named checks that a mixer in a model can answer; others are about scores, weights or kernels."""
    if names is None:
        return None
    wanted = [names] if isinstance(names, str) else list(names)
    kept = []
    for name in wanted:
        try:
            kept.append(match_name(name, known_checks("model")))
        except UnknownCheckError:
            match_name(name, known_checks("mechanism"))  # refuses a name of no check
    if wanted and not kept:
        raise RequestError(
            f"'{mechanism}' has no pairs for the check '{wanted[0]}'; it can be audited for "
            f"{', '.join(known_checks('model'))}"
        )
    return kept
