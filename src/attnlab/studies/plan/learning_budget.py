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
        if num_steps < MIN_UPDATES.get(task, 0):
            yield (
                f"warning: {planned.phase}: {num_steps:,} updates are too few for '{task}' (it needs "
                f"{MIN_UPDATES[task]} at least); set phases.{planned.phase}.segments.0.steps"
            )
        size = re.fullmatch(r"(?:word|wordpiece|bpe):(\d+)", run.data.tokenizer or "")
        if task not in DEFAULT_LENGTHS or size is None:
            continue
        default = int(run.task_settings.get("max_len", DEFAULT_LENGTHS[task]))
        tokens = sum((segment.steps or 0) * segment.batch * (segment.length or default) for segment in run.segments)
        needed = count_needed_tokens(int(size[1]))
        if tokens < needed:
            factor = -(-needed * num_steps // max(tokens, 1))
            yield (
                f"warning: {planned.phase}: at most {tokens:,} tokens of training are too few for a vocabulary of "
                f"{size[1]} (at least {needed:,} are needed to predict better than word pairs do); train {factor:,} "
                "updates, or take a smaller vocabulary"
            )
