"""A Hugging Face model under audit: random tokens for it, and its outputs for each of them."""

import contextlib
import copy
import dataclasses
import functools
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor, nn

from attnlab.errors import RequestError
from attnlab.install import Layer, mechanism_of
from attnlab.install.compat import get_attention_name
from attnlab.mechanisms import Line

from ..stage_faults import find_stage_of_hidden_tokens, find_stage_of_tokens
from ..subject import DIRECTIONS, Subject, disable_onednn, move_values, noise, peak

LENGTH, LONGEST = 24, 160
"""Tokens of a sequence whose pairs are all checked, and of a longer one, unless the model takes fewer."""

ROUNDINGS, DEEP = 40, 24
"""Roundings of one layer, and the number of layers if a configuration does not say."""

Held = list[tuple[nn.Module, str, nn.Parameter]]
"""Parameters with the modules that hold them, and their names there."""

HALVES = (torch.float16, torch.bfloat16)


@dataclass(frozen=True)
class ModelSubject:
    """A model under audit, whether it must be causal, and the seed of its random inputs; whether learned parameters of
    its mechanism are away from their values."""

    model: nn.Module
    causal: bool
    seed: int = 0
    is_moved: bool = False
    whole: str = ""
    """The class of the model that it is a part of, if the rest has no output per token, such as a classifier."""

    @classmethod
    def create(cls, model: nn.Module, causal: bool | None, seed: int = 0) -> Self:
        """Make the subject of an audit; if `causal` is omitted, the model determines it."""
        config = getattr(model, "config", None)
        if config is None or not hasattr(config, "get_text_config"):
            raise RequestError(
                f"an audit takes a line such as 'dot | softmax' or a Hugging Face model, not {type(model).__name__}"
            )
        if not isinstance(getattr(config.get_text_config(), "vocab_size", None), int):
            raise RequestError(f"{type(model).__name__} has no vocabulary; an audit needs a model that takes tokens")
        part = _find_part_with_token_outputs(model)
        whole = "" if part is model else type(model).__name__
        if causal is None:
            causal = _read_causality(part)
        is_causal = _test_causality(cls(part, True, seed)) if causal is None else causal
        return cls(part, is_causal, seed, whole=whole)

    @property
    def title(self) -> str:
        """The model's class, its size, and the mechanism installed in it, if any."""
        num_parameters = sum(p.numel() for p in self.model.parameters())
        mechanism = mechanism_of(self.model)
        installed = "" if mechanism is None else f", with '{mechanism}'"
        name = type(self.model).__name__
        part = f"the {name} in {self.whole}" if self.whole else name
        return f"{part}, {num_parameters:,} parameters{installed}"

    @property
    def mechanism(self) -> Line | None:
        """The mechanism installed in the model, if any."""
        return mechanism_of(self.model)

    def count_non_finite(self) -> tuple[int, int]:
        """Return how many outputs of random tokens are not finite, of how many; in fp32 at least."""
        precise = self.precise
        try:
            with torch.no_grad(), precise.mode(False):
                outputs = precise.outputs(self.tokens(2))
        except Exception:  # a model may raise anything; the checks say so, each for itself
            return 0, 0
        return int((~outputs.isfinite()).sum()), outputs.numel()

    @property
    def length(self) -> int:
        """The number of tokens of a sequence whose pairs are all checked."""
        return min(LENGTH, self.longest)

    @property
    def longest(self) -> int:
        """The number of tokens of the longest sequence."""
        most = getattr(self.config, "max_position_embeddings", None)
        if not isinstance(most, int) or most < 1:
            return LONGEST
        # Some models count positions from the padding token's index, so that the last positions do not exist.
        return min(LONGEST, most - 4 if most > 8 else most)

    @functools.cached_property
    def precise(self) -> Self:
        """The subject in fp32 if the model is in half precision, whose rounding would hide small faults."""
        if self.dtype not in HALVES:
            return self
        return dataclasses.replace(self, model=copy.deepcopy(self.model).float())

    @functools.cached_property
    def exact(self) -> Self:
        """The subject in fp64."""
        return dataclasses.replace(self, model=copy.deepcopy(self.model).double())

    @property
    def dtype(self) -> torch.dtype:
        """The precision of the model's weights."""
        return next((p.dtype for p in self.model.parameters() if p.is_floating_point()), torch.float32)

    @property
    def config(self) -> Any:
        """The configuration of the part that takes text."""
        return self.model.config.get_text_config()  # type: ignore[operator, union-attr]

    @property
    def arguments(self) -> set[str]:
        """The names of the arguments of the model's forward."""
        return set(inspect.signature(self.model.forward).parameters)

    @property
    def is_encoder_decoder(self) -> bool:
        """Whether the tokens go to the decoder, with a fixed sequence for the encoder."""
        return bool(getattr(self.config, "is_encoder_decoder", False))

    @property
    def device(self) -> torch.device:
        """The device of the model."""
        return next(self.model.parameters()).device

    def tokens(self, batch: int, length: int | None = None, salt: int = 0) -> Tensor:
        """Draw tokens [b n], without the special tokens of the configuration."""
        special = {v for k, v in self.config.to_dict().items() if k.endswith("token_id") and isinstance(v, int)}
        plain = torch.tensor([t for t in range(self.config.vocab_size) if t not in special])
        draw = torch.Generator().manual_seed(1000 * self.seed + salt)
        return plain[torch.randint(len(plain), (batch, length or self.length), generator=draw)].to(self.device)

    def run(self, tokens: Tensor, mask: Tensor | None = None, **more: Any) -> Any:
        """Run the model on tokens, with the same dropout in every call, and return its output."""
        name = "decoder_" if self.is_encoder_decoder else ""
        given: dict[str, Any] = {**more, f"{name}input_ids": tokens}
        if "inputs_embeds" in more:
            del given[f"{name}input_ids"]
            given[f"{name}inputs_embeds"] = given.pop("inputs_embeds")
        if mask is not None:
            given[f"{name}attention_mask"] = mask
        if self.is_encoder_decoder and "input_ids" not in more:
            given["input_ids"] = self.tokens(1, salt=99).expand(tokens.shape[0], -1)
        if "use_cache" in self.arguments:
            given.setdefault("use_cache", False)
        backend = disable_onednn() if self.dtype in HALVES else contextlib.nullcontext()
        with torch.random.fork_rng(devices=[self.device] if self.device.type == "cuda" else []), backend:
            torch.manual_seed(self.seed)
            return self.model(**given)

    def outputs(self, tokens: Tensor, mask: Tensor | None = None, **more: Any) -> Tensor:
        """Return the model's output for each token, [b n ·]."""
        output = self.run(tokens, mask, **more)
        part = find_token_outputs(output, tokens.shape[1])
        if part is None:
            raise RequestError(f"{type(output).__name__} has no output per token, so there is nothing to compare")
        return part

    def outputs_of_embeddings(self, tokens: Tensor, mask: Tensor | None, embeddings: Tensor) -> Tensor:
        """Return the model's output for each token if the embeddings of the tokens are these, [b n m]."""
        mechanism = mechanism_of(self.model)
        if mechanism is None or not mechanism.find_stages_needing("tokens"):
            return self.outputs(tokens, mask, inputs_embeds=embeddings)
        # A mechanism that needs the token ids refuses inputs_embeds, so the embedding module returns them instead.
        module: nn.Module = self.model.get_input_embeddings()  # type: ignore[operator]
        handle = module.register_forward_hook(lambda *_: embeddings)
        try:
            return self.outputs(tokens, mask)
        finally:
            handle.remove()

    def noise(self, outputs: Tensor) -> float:
        """Return how much two ways to the same outputs may differ; each layer adds to the rounding."""
        depth = getattr(self.config, "num_hidden_layers", None)
        return noise(outputs, ROUNDINGS * (1 + (depth if isinstance(depth, int) else DEEP)))

    def locate_fault(self, otherwise: str) -> str:
        """Say where to look: the installed mechanism, a mask function that is missing, or `otherwise`."""
        mechanism = mechanism_of(self.model)
        if mechanism is not None and all(each.mixer is not None for each in mechanism.distinct):
            return f"the module of '{mechanism}': its forward, or its step if there is one"
        if mechanism is not None:
            for each in mechanism.distinct:
                if fault := find_stage_of_tokens(each):
                    return fault
            masks = [each.causal for each in mechanism.distinct if each.causal.where != "before"]
            for each in () if masks else mechanism.distinct:
                if fault := find_stage_of_hidden_tokens(Subject.create(each, self.causal)):
                    return fault
            suspect = masks[0] if masks else mechanism
            return f"'{suspect}', which is installed in the model; attnlab.audit('{mechanism}') audits it alone"
        # Imported here, since the audit of a mechanism does not need transformers.
        from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS

        name = get_attention_name(self.config)
        if name is not None and name not in ALL_MASK_ATTENTION_FUNCTIONS:
            return (
                f"attention '{name}', which has no mask function: transformers then passes no mask at all. Register "
                "one under the same name with AttentionMaskInterface.register"
            )
        return f"attention '{name}': {otherwise}"

    @property
    def has_parameters(self) -> bool:
        """Whether the mechanism in the model has learned parameters."""
        return bool(self._list_parameters())

    def is_of_mechanism(self, name: str) -> bool:
        """Tell whether a parameter of the model is a learned one of its mechanism."""
        return any(self.model.get_parameter(name) is p for _, _, p in self._list_parameters())

    @contextlib.contextmanager
    def moved(self) -> Iterator[Self]:
        """Put moved parameters in place of the mechanism's own, which the model has again afterwards.

        The subject is given as it is if moved parameters give numbers that are not finite in every direction.
        """
        held = self._list_parameters()
        try:
            for direction in DIRECTIONS if held else ():
                self._move_parameters(held, direction)
                moved = dataclasses.replace(self, is_moved=True)
                if not moved.count_non_finite()[0]:
                    yield moved
                    return
            _put_in(held)
            yield self
        finally:
            _put_in(held)

    def _list_parameters(self) -> Held:
        """List the learned parameters of the mechanism, and of a mixer: the module, the name and the parameter."""
        layers = [module for module in self.model.modules() if isinstance(module, Layer)]
        return [
            (module, name, p)
            for module in dict.fromkeys(module for layer in layers for module in layer.modules())
            for name, p in module.named_parameters(recurse=False, remove_duplicate=False)
            if p.is_floating_point()
        ]

    def _move_parameters(self, held: Held, direction: int) -> None:
        """Replace parameters by moved ones; those that are held are not written to."""
        draw = torch.Generator().manual_seed(self.seed + 1)
        moved = {id(p): p for _, _, p in held}
        for number, p in moved.items():
            moved[number] = nn.Parameter(move_values(p.detach(), draw, direction), p.requires_grad)
        _put_in([(module, name, moved[id(p)]) for module, name, p in held])

    @contextlib.contextmanager
    def mode(self, training: bool) -> Iterator[None]:
        """Put the model into training or evaluation mode, and back afterwards."""
        before = {module: module.training for module in self.model.modules()}
        self.model.train(training)
        try:
            yield
        finally:
            for module, was_training in before.items():
                module.training = was_training


def _put_in(held: Held) -> None:
    for module, name, p in held:
        setattr(module, name, p)


def _find_part_with_token_outputs(model: nn.Module) -> nn.Module:
    """Return the model, or its body if its head has one output for a whole sequence."""
    probe = ModelSubject(model, causal=True)
    body = getattr(model, "base_model", model)
    with torch.no_grad(), probe.mode(False):
        output = probe.run(probe.tokens(1))
    return body if find_token_outputs(output, probe.length) is None else model


def _read_causality(model: nn.Module) -> bool | None:
    """Tell whether a model declares itself causal, by its attention or because it can generate; None if unknown."""
    config: Any = model.config
    if getattr(config, "is_encoder_decoder", False):
        return True
    flags = [module.is_causal for module in model.modules() if isinstance(getattr(module, "is_causal", None), bool)]
    if flags:
        return any(flags)
    can_generate: Any = getattr(model, "can_generate", None)
    if getattr(config, "is_decoder", False) or (can_generate is not None and can_generate()):
        return True
    return None


def _test_causality(subject: ModelSubject) -> bool:
    """Test whether a model is causal: no output changes if a later token does."""
    tokens = subject.tokens(2)
    last = subject.tokens(2, 1, salt=1)
    with torch.no_grad(), subject.mode(False):
        before, after = subject.outputs(tokens), subject.outputs(torch.cat([tokens[:, :-1], last], 1))
    return peak((after - before)[:, :-1]) <= noise(before)


def find_token_outputs(output: Any, length: int) -> Tensor | None:
    """Return the first part of an output that has a row for every token."""
    for name in ("logits", "last_hidden_state", "start_logits", "prediction_logits"):
        part = getattr(output, name, None)
        if isinstance(part, Tensor) and part.dim() >= 2 and part.shape[1] == length:
            return part if part.dim() == 3 else part[..., None]
    return None
