"""Private names of torch and transformers that install and audits use, each with its reason.

tests/install/test_compat.py fails if one of them is gone or has changed its meaning.
"""

from typing import Any

import torch
from torch import nn
from transformers import PreTrainedConfig
from transformers.utils import output_capturing

ATTENTION_REGISTRY = "ALL_ATTENTION_FUNCTIONS"
"""The global of transformers' modeling files in which an attention module looks up the function it calls.

A module whose forward uses it goes through the AttentionInterface; there is no public way to find out.
"""


def get_attention_name(config: PreTrainedConfig) -> str | None:
    """Return the name of the attention function that modules of this config call; there is no public attribute."""
    name: str | None = config._attn_implementation
    return name


def set_attention_name(config: PreTrainedConfig, name: str | None) -> None:
    """Set that name; the public `set_attn_implementation` of a model checks it against kernels that it knows."""
    config._attn_implementation = name


def is_compiled(module: nn.Module) -> bool:
    """Tell whether torch.compile has wrapped a module, or compiled it in place; torch has no public test."""
    return hasattr(module, "_orig_mod") or getattr(module, "_compiled_call_impl", None) is not None


def original_module(module: nn.Module) -> nn.Module:
    """Return the module that torch.compile has wrapped, or the module itself."""
    inner: nn.Module = getattr(module, "_orig_mod", module)
    return inner


def records_attentions() -> bool:
    """Tell whether transformers is recording attention weights for `output_attentions=True`."""
    collector: Any = output_capturing._active_collector
    # torch.compile cannot trace the context variable; transformers has a plain variable for that.
    recorded = collector.global_var if torch.compiler.is_compiling() else collector.get()
    return recorded is not None and any("attentions" in name for name in recorded)


def supports_static_cache(model: nn.Module) -> bool:
    """Tell whether a model can be compiled whole, which transformers requires for a static cache in `generate`."""
    return bool(getattr(model, "_can_compile_fullgraph", False))
