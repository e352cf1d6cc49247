"""Tokenizers built from a vocabulary: BERT's word pieces, byte-level BPE, whole words, and characters."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from attnlab.errors import DataError

if TYPE_CHECKING:
    import transformers

    FastTokenizer = transformers.PreTrainedTokenizerFast
else:
    FastTokenizer = Any  # importing transformers takes seconds, and quick commands do not need it

BERT = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
ROBERTA = {"bos": "<s>", "pad": "<pad>", "eos": "</s>", "unk": "<unk>", "mask": "<mask>", "cls": "<s>", "sep": "</s>"}
GPT2 = {"bos": "<|endoftext|>", "eos": "<|endoftext|>", "unk": "<|endoftext|>"}
WORDS = {"bos": "<START>", "eos": "<STOP>", "unk": "<UNK>", "pad": "<PAD>"}
CHARACTERS = {"eos": "<END>", "unk": "<UNK>", "pad": "<PAD>"}
"""Special tokens by role, in the order of their ids."""


def parse_backend(content: str, path: Path) -> Tokenizer:
    """Parse the content of a tokenizer.json; `path` is for the error message."""
    try:
        return Tokenizer.from_str(content)
    except Exception as error:  # tokenizers raises nothing more specific
        raise DataError(f"{path} is not a valid tokenizer.json ({error}); save or train it again") from error


def wrap(backend: Tokenizer, roles: dict[str, str]) -> FastTokenizer:
    """Wrap a tokenizer of `tokenizers` as one of transformers, with special tokens by role."""
    from transformers import PreTrainedTokenizerFast

    tokens: dict[str, Any] = {f"{role}_token": token for role, token in roles.items()}
    if roles == BERT:
        # By default transformers omits token_type_ids, and BERT then takes all tokens for the first text.
        tokens["model_input_names"] = ["input_ids", "token_type_ids", "attention_mask"]
    return PreTrainedTokenizerFast(tokenizer_object=backend, **tokens)  # type: ignore[no-untyped-call]


def build_wordpiece(vocabulary: dict[str, int], is_lowercase: bool) -> FastTokenizer:
    """Build BERT's tokenizer from a vocabulary."""
    backend = Tokenizer(models.WordPiece(vocabulary, unk_token=BERT["unk"], max_input_chars_per_word=100))
    backend.normalizer = normalizers.BertNormalizer(lowercase=is_lowercase)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    ends = [(BERT[role], vocabulary[BERT[role]]) for role in ("cls", "sep")]
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0", pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1", special_tokens=ends
    )
    return wrap(backend, BERT)


def build_bpe(vocabulary: dict[str, int], merges: list[tuple[str, str]]) -> FastTokenizer:
    """Build a byte-level tokenizer from a vocabulary and its merges, RoBERTa's if it has its tokens, else GPT-2's."""
    backend = Tokenizer(models.BPE(vocabulary, merges))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    if all(token in vocabulary for token in ROBERTA.values()):
        first, last = ((ROBERTA[role], vocabulary[ROBERTA[role]]) for role in ("cls", "sep"))
        # Positional, as the stub names these arguments differently: sep, cls, trim_offsets, add_prefix_space.
        backend.post_processor = processors.RobertaProcessing(last, first, True, False)
        return wrap(backend, ROBERTA)
    backend.post_processor = processors.ByteLevel(trim_offsets=False)
    if GPT2["eos"] not in vocabulary:
        raise DataError(
            f"a byte-level vocabulary needs {GPT2['eos']}, as in GPT-2, or {', '.join(ROBERTA.values())}, as in "
            "RoBERTa; this one has neither"
        )
    return wrap(backend, GPT2)


def build_words(vocabulary: dict[str, int], is_lowercase: bool = False) -> FastTokenizer:
    """Build a tokenizer of words separated by white space, with START before a text and STOP after it."""
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token=WORDS["unk"]))
    if is_lowercase:
        backend.normalizer = normalizers.Lowercase()
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    ends = [(WORDS[role], vocabulary[WORDS[role]]) for role in ("bos", "eos")]
    backend.post_processor = processors.TemplateProcessing(
        single="<START> $A <STOP>", pair="<START> $A <STOP> $B <STOP>", special_tokens=ends
    )
    return wrap(backend, WORDS)


def build_characters(vocabulary: dict[str, int], is_lowercase: bool = False) -> FastTokenizer:
    """Build a tokenizer of single characters, white space and line breaks included."""
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token=CHARACTERS["unk"]))
    if is_lowercase:
        backend.normalizer = normalizers.Lowercase()
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    backend.decoder = decoders.Fuse()
    return wrap(backend, CHARACTERS)


def find_roles(content: dict[str, Any]) -> dict[str, str]:
    """Return the special tokens by role that a tokenizer.json has, if they are those of a known tokenizer."""
    tokens = {token["content"] for token in content.get("added_tokens", [])}
    return next((roles for roles in (BERT, ROBERTA, WORDS, CHARACTERS, GPT2) if set(roles.values()) <= tokens), {})
