"""Load what `save_pretrained` wrote: code that comes with a checkpoint is never run, and pickles are never read."""

from pathlib import Path
from typing import Any

from attnlab.errors import PretrainedError


def load_pretrained(kind: Any, name: str | Path, **options: Any) -> Any:
    """Call `from_pretrained` of a class of transformers, with `trust_remote_code=False` and safetensors alone.

    transformers, safetensors, tokenizers and the hub raise errors of many kinds for a folder that is not whole. Every
    one becomes a PretrainedError in one sentence.
    """
    safe: dict[str, Any] = {"trust_remote_code": False}
    if hasattr(kind, "from_config") or hasattr(kind, "_from_config"):  # a model, not a config or a tokenizer
        safe["use_safetensors"] = True
    try:
        return kind.from_pretrained(str(name), **safe, **options)
    except Exception as error:
        lines = str(error).strip().splitlines()
        reason = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
        raise PretrainedError(reason.rstrip(".;")) from error
