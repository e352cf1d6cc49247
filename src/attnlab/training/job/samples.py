"""What a run samples from its model: prompts that are continued, and sentences whose losses are recorded.

Whether they fit into the positions of a model is known from its tokenizer and its config, before it is built.
"""

from collections.abc import Sequence
from typing import Any

from attnlab.errors import TaskError, TrainingError
from attnlab.tasks import Clm
from attnlab.tasks.language.sentences import encode_prompt

from ..spec import Watching

SHOWN = 40
"""Characters of a prompt in an error."""


def check_samples(settings: Watching, tokenizer: Any, num_positions: int | None, task: Clm | None = None) -> None:
    """Refuse prompts and sentences that a tokenizer cannot begin, or that are longer than a model has positions."""
    for number, prompt in enumerate(settings.prompts):
        try:
            num_given = len(encode_prompt(tokenizer, prompt, task))
        except TaskError as error:
            raise TrainingError(
                f"prompts[{number}] is empty, and there is no start token to begin a sample with; give "
                'prompts = ["some words"], or leave sample_every out'
            ) from error
        needed = num_given + settings.num_tokens - 1  # the last token is drawn, and never read
        if num_positions is not None and needed > num_positions:
            raise TrainingError(
                f"prompts[{number}], '{_shorten(prompt)}', has {num_given} tokens, and num_tokens = "
                f"{settings.num_tokens} more are sampled: {needed} positions, and the model has {num_positions}. "
                f"{_advise(num_given, num_positions)}, or build a model with more positions"
            )
    for number, sentence in enumerate(settings.sentences):
        added = (Clm() if task is None else task).find_special_tokens(tokenizer)
        num_text = len(tokenizer(sentence, add_special_tokens=False)["input_ids"])
        num_given = len(added.before) + num_text + len(added.after)
        if num_positions is not None and num_given > num_positions:
            raise TrainingError(
                f"sentences[{number}], '{_shorten(sentence)}', has {num_given} tokens, and the model has positions for "
                f"{num_positions}; give a shorter sentence, or build a model with more positions"
            )


def choose_fitting_prompts(texts: Sequence[str], tokenizer: Any, num_given: int) -> list[str]:
    """Return each text without the words that exceed a number of tokens; one whose first word does is left out."""
    fitting = []
    for text in texts:
        words = text.split()
        while words and len(encode_prompt(tokenizer, " ".join(words))) > num_given:
            words.pop()
        if words:
            fitting.append(" ".join(words))
    return fitting


def _advise(num_given: int, num_positions: int) -> str:
    most = num_positions - num_given + 1
    return f"Set num_tokens = {most} or less, or give a shorter prompt" if most > 0 else "Give a shorter prompt"


def _shorten(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
