"""Apply a `Tuning` to a model: add what the mode adds, and make exactly its parts trainable."""

from transformers import PreTrainedModel

from attnlab.errors import TrainingError
from attnlab.install import mechanism_of, set_prefix
from attnlab.install.inspection import list_replaced_parameters
from attnlab.install.saving import UNSAVED

from ..spec import Tuning
from .lora import add_lora
from .parts import PARTS, Part, parameters_by_part
from .prompt import add_prompt

ADDED: tuple[Part, ...] = ("prompt", "prefix", "lora")


def apply_tuning(model: PreTrainedModel, tuning: Tuning, *, has_new_head: bool, seed: int = 0) -> None:
    """Tune a model in place, after its mechanism is installed and before its optimizer is made.

    An error leaves the model unchanged. torch's global generator is not used.
    has_new_head: whether the head is new for the task (classification, questions) and so trains in every mode; a
    pretrained language model's head stays frozen with a prompt, a prefix or LoRA.
    seed: the initial values of what is added depend on it and on their names.
    """
    _check_model(model, seed)
    parts: set[Part] = set(PARTS) if tuning.mode == "full" else {tuning.mode}
    if has_new_head:
        parts.add("head")
    if tuning.mode != "full" and "head" in parts:
        _check_head(model, tuning)
    if tuning.mode in ("prefix", "lora") and list_replaced_parameters(model):
        raise TrainingError(
            f"'{mechanism_of(model)}' has no keys and no projections that tuning mode '{tuning.mode}' could change; "
            "use mode full or prompt"
        )
    if tuning.mode == "prompt":
        add_prompt(model, tuning.length, seed)
    elif tuning.mode == "prefix":
        if mechanism_of(model) is None:
            raise TrainingError(
                f"a prefix is put before the keys by attnlab's attention, and this {type(model).__name__} has none; "
                "call attnlab.install(model, 'dot | softmax') first, which computes what the model did"
            )
        set_prefix(model, tuning.length, seed=seed)
    elif tuning.mode == "lora":
        add_lora(model, tuning, seed)
    if tuning.mode in ("prompt", "lora"):
        vars(model)[UNSAVED] = "a prompt" if tuning.mode == "prompt" else "LoRA adapters"
    unused = {id(parameter) for parameter in list_replaced_parameters(model)}
    for _, parameter, part in parameters_by_part(model):
        if parameter.is_floating_point():
            parameter.requires_grad_(part in parts and id(parameter) not in unused)


def _check_model(model: PreTrainedModel, seed: int) -> None:
    if not isinstance(model, PreTrainedModel) or getattr(model, "_compiled_call_impl", None) is not None:
        kind = "one that is compiled already" if isinstance(model, PreTrainedModel) else type(model).__name__
        raise TrainingError(
            f"tuning needs a Hugging Face model (transformers.PreTrainedModel), not {kind}; tune it first, then "
            "wrap or compile it"
        )
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise TrainingError(f"seed must be a whole number, not {seed!r}")
    added = next((part for _, _, part in parameters_by_part(model) if part in ADDED), None)
    if added is not None:
        raise TrainingError(
            f"this {type(model).__name__} has a {added} already; tune a model as it was built or loaded"
        )


def _check_head(model: PreTrainedModel, tuning: Tuning) -> None:
    if any(part == "head" for _, _, part in parameters_by_part(model)):
        return
    is_body = model.base_model is model
    reason = "it is a body without a head" if is_body else "its head is tied to the body's input embedding"
    raise TrainingError(
        f"tuning '{tuning.mode}' trains the head of a model, and this {type(model).__name__} has no head of its own: "
        f"{reason}; build it with the task's head, or choose another tuning mode"
    )
