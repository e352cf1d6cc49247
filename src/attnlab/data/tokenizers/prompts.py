"""A tokenizer that encodes a prompt as causal language models are trained on the beginning of a text."""

import copy
from typing import Any

from tokenizers import processors


def build_prompt_tokenizer(tokenizer: Any, has_start: bool) -> Any:
    """Return a copy that puts the start token before a text, if asked and there is one, and nothing after it.

    BERT's and RoBERTa's tokenizers end every text with a special token, after which a model writes another text.
    """
    prompts = copy.deepcopy(tokenizer)
    start = prompts.bos_token if has_start and prompts.bos_token_id is not None else None
    steps: list[Any] = []
    if type(prompts.backend_tokenizer.pre_tokenizer).__name__ == "ByteLevel":
        steps.append(processors.ByteLevel(trim_offsets=False))
    if start is not None:
        tokens = [(start, prompts.bos_token_id)]
        steps.append(processors.TemplateProcessing(f"{start} $A", f"{start} $A $B", tokens))
    # An empty sequence adds nothing; a tokenizer cannot be left without a step.
    prompts.backend_tokenizer.post_processor = processors.Sequence(steps)
    return prompts
