"""Small tokenizers of the two great kinds, made from a few sentences: what the tests of this room encode with."""

from functools import cache
from typing import Any

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

SENTENCES = [
    "The Denver Broncos defeated the Carolina Panthers 24–10 to earn their third Super Bowl title.",
    "Who won the game? It was played on February 7, 2016, at Levi's Stadium in Santa Clara, California.",
    "Is the café in Köln open? Yes, it is: 3 euros a cup, naïve as it seems. 北京 is far away.",
    "a b c d e f g h i j k l m n o p q r s t u v w x y z 0 1 2 3 4 5 6 7 8 9 , . ; : ! ? ' - ( )",
]
MARKS = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}
END = "<|endoftext|>"


@cache
def wordpiece() -> Any:
    """Return a tokenizer of BERT's kind: lower case, no accents, [CLS] and [SEP]."""
    backend = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=220, special_tokens=list(MARKS.values()), show_progress=False)
    backend.train_from_iterator(SENTENCES, trainer)
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[(mark, backend.token_to_id(mark)) for mark in ("[CLS]", "[SEP]")],
    )
    backend.decoder = decoders.WordPiece()
    make: Any = PreTrainedTokenizerFast
    return make(tokenizer_object=backend, **MARKS)


@cache
def byte_level() -> Any:
    """Return a tokenizer of GPT-2's kind: bytes, spaces inside tokens, no marks, no padding."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=340, special_tokens=[END], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    backend.train_from_iterator(SENTENCES, trainer)
    backend.post_processor = processors.ByteLevel(trim_offsets=False)
    backend.decoder = decoders.ByteLevel()
    make: Any = PreTrainedTokenizerFast
    return make(tokenizer_object=backend, bos_token=END, eos_token=END)


KINDS = {"wordpiece": wordpiece, "byte level": byte_level}
