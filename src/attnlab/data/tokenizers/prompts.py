"""A tokenizer that encodes a prompt as causal language models are trained on the beginning of a text."""

import copy
from typing import Any

from tokenizers import processors


def build_prompt_tokenizer(tokenizer: Any, start: tuple[int, ...]) -> Any:
    """Return a copy that puts the start tokens, if there are any, before a text, and nothing after it.

    BERT's and RoBERTa's tokenizers end every text with a special token, after which a model writes another text. BERT's
    also gives token types, which GPT-2 would add to the text as embeddings of other tokens.
    """
    prompts = copy.deepcopy(tokenizer)
    prompts.model_input_names = [name for name in prompts.model_input_names if name != "token_type_ids"]
    steps: list[Any] = []
    if type(prompts.backend_tokenizer.pre_tokenizer).__name__ == "ByteLevel":
        steps.append(processors.ByteLevel(trim_offsets=False))
    if start:
        names = prompts.convert_ids_to_tokens(list(start))
        template = " ".join([*names, "$A"])
        steps.append(processors.TemplateProcessing(template, f"{template} $B", list(zip(names, start, strict=True))))
    # An empty sequence adds nothing; a tokenizer cannot be left without a step.
    prompts.backend_tokenizer.post_processor = processors.Sequence(steps)
    return prompts
