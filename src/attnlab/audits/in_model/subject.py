"""A Hugging Face model under audit: random tokens for it, and what it makes of each of them."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.errors import RequestError
from attnlab.install import mechanism_of

from ..subject import noise, peak, without_onednn

LENGTH, LONGEST = 24, 160
"""Tokens of a sequence that every pair is looked at of, and of a longer one, unless the model takes fewer."""

ROUNDINGS, DEEP = 40, 24
"""Roundings of one layer, and how many layers there are where a configuration does not say."""

HALVES = (torch.float16, torch.bfloat16)


@dataclass(frozen=True)
class ModelSubject:
    """A model, whether no token of it may see a later one, and the seed of what it is shown."""

    model: nn.Module
    causal: bool
    seed: int = 0

    @classmethod
    def of(cls, model: nn.Module, causal: bool | None, seed: int = 0) -> ModelSubject:
        """Put a model under audit; causal as its own attention says, if it is left out."""
        config = getattr(model, "config", None)
        if config is None or not hasattr(config, "get_text_config"):
            raise RequestError(
                f"an audit takes a line such as 'dot | softmax' or a Hugging Face model, not {type(model).__name__}"
            )
        if not isinstance(getattr(config.get_text_config(), "vocab_size", None), int):
            raise RequestError(f"{type(model).__name__} has no vocabulary; an audit shows a model random tokens")
        model = with_answers(model)
        if causal is None:
            causal = says_causal(model)
        return cls(model, is_causal(cls(model, True, seed)) if causal is None else causal, seed)

    @property
    def title(self) -> str:
        """The model's class, its size, and the mechanism installed in it, if any is."""
        num_parameters = sum(p.numel() for p in self.model.parameters())
        mechanism = mechanism_of(self.model)
        installed = "" if mechanism is None else f", with '{mechanism}'"
        return f"{type(self.model).__name__}, {num_parameters:,} parameters{installed}"

    @property
    def length(self) -> int:
        """How many tokens a sequence has of which every pair is looked at."""
        return min(LENGTH, self.longest)

    @property
    def longest(self) -> int:
        """How many tokens the longest sequence has that is asked about."""
        most = getattr(self.config, "max_position_embeddings", None)
        if not isinstance(most, int) or most < 1:
            return LONGEST
        # Some count their positions from padding's index on, so that the last ones do not exist.
        return min(LONGEST, most - 4 if most > 8 else most)

    @functools.cached_property
    def precise(self) -> ModelSubject:
        """The subject in fp32 where the model is in half precision, whose rounding would hide what is looked for."""
        if self.dtype not in HALVES:
            return self
        return dataclasses.replace(self, model=copy.deepcopy(self.model).float())

    @property
    def dtype(self) -> torch.dtype:
        """The precision of the model's weights."""
        return next((p.dtype for p in self.model.parameters() if p.is_floating_point()), torch.float32)

    @property
    def config(self) -> Any:
        """The configuration of the part that reads text."""
        return self.model.config.get_text_config()  # type: ignore[operator, union-attr]

    @property
    def takes(self) -> set[str]:
        """The arguments the model's forward takes by name."""
        return set(inspect.signature(self.model.forward).parameters)

    @property
    def is_encoder_decoder(self) -> bool:
        """Whether the sequence is asked about in the decoder, beside a fixed one in the encoder."""
        return bool(getattr(self.config, "is_encoder_decoder", False))

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return next(self.model.parameters()).device

    def tokens(self, batch: int, length: int | None = None, salt: int = 0) -> Tensor:
        """Draw tokens [b n], none of them one that the configuration gives a meaning of its own."""
        special = {v for k, v in self.config.to_dict().items() if k.endswith("token_id") and isinstance(v, int)}
        plain = torch.tensor([t for t in range(self.config.vocab_size) if t not in special])
        draw = torch.Generator().manual_seed(1000 * self.seed + salt)
        picked = torch.randint(len(plain), (batch, length or self.length), generator=draw)
        return plain[picked].to(self.device)

    def run(self, tokens: Tensor, mask: Tensor | None = None, **more: Any) -> Any:
        """Run the model on tokens with a draw of dropout that is the same at every call; return its output."""
        name = "decoder_" if self.is_encoder_decoder else ""
        given: dict[str, Any] = {**more, f"{name}input_ids": tokens}
        if "inputs_embeds" in more:
            del given[f"{name}input_ids"]
            given[f"{name}inputs_embeds"] = given.pop("inputs_embeds")
        if mask is not None:
            given[f"{name}attention_mask"] = mask
        if self.is_encoder_decoder and "input_ids" not in more:
            given["input_ids"] = self.tokens(1, salt=99).expand(tokens.shape[0], -1)
        if "use_cache" in self.takes:
            given.setdefault("use_cache", False)
        careful = without_onednn() if self.dtype in HALVES else contextlib.nullcontext()
        with torch.random.fork_rng(devices=[self.device] if self.device.type == "cuda" else []), careful:
            torch.manual_seed(self.seed)
            return self.model(**given)

    def answers(self, tokens: Tensor, mask: Tensor | None = None, **more: Any) -> Tensor:
        """Return what the model makes of each token, [b n ·]."""
        return per_token(self.run(tokens, mask, **more), tokens.shape[1])

    def noise(self, answers: Tensor) -> float:
        """Return by how much two ways to the same answers may differ: each layer rounds once more."""
        depth = getattr(self.config, "num_hidden_layers", None)
        return noise(answers, ROUNDINGS * (1 + (depth if isinstance(depth, int) else DEEP)))

    def where(self, otherwise: str) -> str:
        """Say where to look: the installed mechanism, a mask function that is missing, or what the finding says."""
        mechanism = mechanism_of(self.model)
        if mechanism is not None:
            suspect = mechanism.mask if mechanism.mask.where != "before" else mechanism
            return (
                f"'{suspect}', which is installed in the model; attnlab.audit('{mechanism}') asks the mechanism alone"
            )
        # The registry is transformers' own, whose import a mechanism's audit does without.
        from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS

        name = getattr(self.config, "_attn_implementation", None)
        if name is not None and name not in ALL_MASK_ATTENTION_FUNCTIONS:
            return (
                f"attention '{name}', which has no mask function: transformers then passes no mask at all. Register "
                "one under the same name with AttentionMaskInterface.register"
            )
        return f"attention '{name}': {otherwise}"

    @contextlib.contextmanager
    def mode(self, training: bool) -> Iterator[None]:
        """Put the model into training or evaluation, and back afterwards."""
        before = {module: module.training for module in self.model.modules()}
        self.model.train(training)
        try:
            yield
        finally:
            for module, was in before.items():
                module.training = was


def with_answers(model: nn.Module) -> nn.Module:
    """Return the model, or the body of one whose head has one answer for a whole sequence."""
    probe = ModelSubject(model, causal=True)
    body = getattr(model, "base_model", model)
    with torch.no_grad(), probe.mode(False):
        output = probe.run(probe.tokens(1))
    has_them = any(True for _ in rows_of(output, probe.length))
    return model if has_them or body is model else body


def says_causal(model: nn.Module) -> bool | None:
    """Tell whether a model calls itself causal, by its attention or as what can generate; None where nothing does."""
    config: Any = model.config
    if getattr(config, "is_encoder_decoder", False):
        return True
    said = [module.is_causal for module in model.modules() if isinstance(getattr(module, "is_causal", None), bool)]
    if said:
        return any(said)
    can_generate: Any = getattr(model, "can_generate", None)
    if getattr(config, "is_decoder", False) or (can_generate is not None and can_generate()):
        return True
    return None


def is_causal(subject: ModelSubject) -> bool:
    """Find out whether a model is causal: no answer of it moves when a later token does."""
    tokens = subject.tokens(2)
    last = subject.tokens(2, 1, salt=1)
    with torch.no_grad(), subject.mode(False):
        before, after = subject.answers(tokens), subject.answers(torch.cat([tokens[:, :-1], last], 1))
    return peak((after - before)[:, :-1]) <= noise(before)


def per_token(output: Any, length: int) -> Tensor:
    """Return the first part of an output that has a row for every token."""
    for found in rows_of(output, length):
        return found
    raise RequestError(f"{type(output).__name__} has nothing for every token, so there is nothing to compare")


def rows_of(output: Any, length: int) -> Iterator[Tensor]:
    """Yield the parts of an output that have a row for every token."""
    for name in ("logits", "last_hidden_state", "start_logits", "prediction_logits"):
        found = getattr(output, name, None)
        if isinstance(found, Tensor) and found.dim() >= 2 and found.shape[1] == length:
            yield found if found.dim() == 3 else found[..., None]
