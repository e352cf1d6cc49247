"""Whether a run is long enough to learn anything: a rule derived from measured runs (docs/studies.md has the table).

A language model with new weights beats the bigram of its training text, its floor, after about 130,000 tokens with a
vocabulary of 100, about 700,000 with 1,000 and about 1,000,000 with 4,000. Fewer tokens than
min(700 · vocabulary, 1,000,000) are too few. A probe of two layers is solved after 300 updates at best, and fewer than
200 are too few; copying 8 tokens takes one layer and 40 updates. There is no rule for other tasks, for checkpoints, or
for a vocabulary that is not known beforehand.
"""

import re
from collections.abc import Iterable, Iterator

from .planning import PlannedRun

TOKENS_PER_WORD = 700
"""Tokens of training per entry of the vocabulary: each needs a few hundred occurrences."""
MAX_TOKENS = 1_000_000
"""Beyond this many tokens no budget is called too small."""
MIN_UPDATES = {
    "copy": 40, "mqar": 200, "induction": 200, "in_context_recall": 200, "noisy_recall": 200, "fuzzy_recall": 200,
    "selective_copying": 200,
}  # fmt: skip
"""Updates of a probe at the least."""

DEFAULT_LENGTHS = {"clm": 512, "mlm": 128}
"""The tokens of a row of the language tasks, unless a study sets max_len."""


def count_needed_tokens(vocab_size: int) -> int:
    """Return the tokens of training without which a new language model does not reach its floor."""
    return min(TOKENS_PER_WORD * vocab_size, MAX_TOKENS)


def explain_few_updates(phase: str, task: str, num_steps: int) -> str:
    """Say that a probe has too few updates to be learned; empty if it has enough."""
    if num_steps >= MIN_UPDATES.get(task, 0):
        return ""
    return (
        f"{phase}: {num_steps:,} updates are too few for '{task}' (it needs {MIN_UPDATES[task]} at least); set "
        f"phases.{phase}.segments.0.steps"
    )


def explain_few_tokens(phase: str, num_steps: int, tokens: int, vocab_size: int) -> str:
    """Say that a language model has too few tokens of training to reach its floor; empty if it has enough."""
    needed = count_needed_tokens(vocab_size)
    if tokens >= needed:
        return ""
    return (
        f"{phase}: at most {tokens:,} tokens of training are too few for a vocabulary of {vocab_size} (at least "
        f"{needed:,} are needed to predict better than word pairs do); train "
        f"{-(-needed * num_steps // max(tokens, 1)):,} updates, or take a smaller vocabulary"
    )


def list_budget_warnings(runs: Iterable[PlannedRun]) -> list[str]:
    """Return a sentence for each phase whose runs are too short to learn."""
    return list(dict.fromkeys(_check_runs(runs)))


def _check_runs(runs: Iterable[PlannedRun]) -> Iterator[str]:
    for planned in runs:
        run = planned.run
        num_steps = sum(segment.steps or 0 for segment in run.segments)
        if planned.parent or run.start.checkpoint or any(segment.steps is None for segment in run.segments):
            continue
        task = run.task.lower()
        if reason := explain_few_updates(planned.phase, task, num_steps):
            yield f"warning: {reason}"
        size = re.fullmatch(r"(?:word|wordpiece|bpe):(\d+)", run.data.tokenizer or "")
        if task not in DEFAULT_LENGTHS or size is None:
            continue
        default = int(run.task_settings.get("max_len", DEFAULT_LENGTHS[task]))
        tokens = sum((segment.steps or 0) * segment.batch * (segment.length or default) for segment in run.segments)
        if reason := explain_few_tokens(planned.phase, num_steps, tokens, int(size[1])):
            yield f"warning: {reason}"
