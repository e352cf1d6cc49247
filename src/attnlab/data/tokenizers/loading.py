"""Tokenizers by name, from a directory, or from a plain vocabulary; each a fast tokenizer of transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnlab.errors import DataError

from ..sources.files import ending_of, open_bytes, read_lines, refuse_to_open
from ..sources.hub import why_unreachable
from .builders import BERT, byte_pairs, read_backend, roles_in, word_pieces, wrap

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

PLAIN = (("vocab.txt", None), ("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe"))
"""What a directory without a config may hold: a vocabulary, and the merges that belong to it."""

# tokenizers and transformers are imported in the functions: --help and sources need neither.


def load_tokenizer(name: str | Path) -> PreTrainedTokenizerFast:
    """Load a tokenizer: a name of the hub, a directory, tokenizer.json, vocab.txt, or vocab.json beside merges.txt."""
    path = Path(name).expanduser()
    if path.is_dir():
        return _from_directory(path)
    if path.is_file():
        return _from_file(path)
    if path.suffix or str(name).count("/") > 1 or str(name).startswith((".", "/", "~")):
        refuse_to_open(path, FileNotFoundError())
    return _from_hub(str(name))


def _from_directory(path: Path) -> PreTrainedTokenizerFast:
    if any((path / name).exists() for name in ("tokenizer_config.json", "config.json")):
        return _auto(str(path), is_local=True)
    if (path / "tokenizer.json").exists():
        return _from_file(path / "tokenizer.json")
    for vocabulary, _ in PLAIN:
        found = sorted(path.glob(f"*{vocabulary}*"))
        if len(found) == 1:
            return _from_file(found[0])
        if found:
            names = ", ".join(one.name for one in found)
            raise DataError(f"{path} has several vocabularies; name one of {names}")
    raise DataError(
        f"{path} has no tokenizer: it needs tokenizer.json, vocab.txt, or vocab.json and merges.txt; a model's folder "
        "has them where the tokenizer was saved too"
    )


def _from_file(path: Path) -> PreTrainedTokenizerFast:
    if ending_of(path) == ".txt":
        return _from_word_pieces(path)
    content = _read_object(path)
    if isinstance(content.get("model"), dict):
        return wrap(read_backend(json.dumps(content), path), roles_in(content))
    return byte_pairs(content, _read_merges(_beside(path)))


def _from_word_pieces(path: Path) -> PreTrainedTokenizerFast:
    vocabulary: dict[str, int] = {}
    for number, token in read_lines(path):
        if token in vocabulary:
            raise DataError(f"{path}, line {number}: {token!r} stood in line {vocabulary[token] + 1} already")
        vocabulary[token] = number - 1
    missing = [token for token in BERT.values() if token not in vocabulary]
    if missing:
        raise DataError(f"{path} is not BERT's vocabulary: it has no {', '.join(missing)}; one token a line is needed")
    # The file does not say whether text is to be lowercased; a vocabulary with capitals would never meet them then.
    is_cased = any(token != token.lower() for token in vocabulary if not token.startswith("["))
    return word_pieces(vocabulary, is_lowercase=not is_cased)


def _read_object(path: Path) -> dict[str, Any]:
    with open_bytes(path) as file:
        try:
            content = json.loads(file.read().decode("utf-8"))
        except (ValueError, EOFError) as error:
            raise DataError(f"{path} is not a vocabulary in JSON: {error}") from error
    if not isinstance(content, dict):
        raise DataError(f"{path} is not a vocabulary: it needs an object of tokens and their ids")
    return content


def _beside(path: Path) -> Path:
    """Find the merges of a vocabulary beside it, compressed or not."""
    for vocabulary, merges in PLAIN[1:]:
        if vocabulary in path.name and merges is not None:
            found = sorted(path.parent.glob(path.name.split(vocabulary)[0] + merges + "*"))
            if found:
                return found[0]
            raise DataError(f"{path} needs its merges beside it; there is no {merges} in {path.parent}")
    raise DataError(f"{path}: cannot tell the merges that belong to it; call the files vocab.json and merges.txt")


def _read_merges(path: Path) -> list[tuple[str, str]]:
    merges = []
    for number, line in read_lines(path):
        if not line or (number == 1 and line.startswith("#version")):
            continue
        first, _, second = line.partition(" ")
        if not second or " " in second:
            raise DataError(f"{path}, line {number}: a merge is two pieces with a space between, not {line!r}")
        merges.append((first, second))
    return merges


def _from_hub(name: str) -> PreTrainedTokenizerFast:
    try:
        # What was fetched before is found at once, with or without a network.
        return _auto(name, is_local=True)
    except DataError:
        said = why_unreachable()
    if said:
        raise DataError(
            f"cannot fetch the tokenizer '{name}' from the hub: {said} Without a network, give a directory, a "
            "vocab.txt, or a vocab.json beside its merges.txt instead"
        )
    return _auto(name, is_local=False)


def _auto(name: str, is_local: bool) -> PreTrainedTokenizerFast:
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    try:
        tokenizer = AutoTokenizer.from_pretrained(name, local_files_only=is_local)
    except (OSError, ValueError) as error:
        first = str(error).strip().splitlines()[0]
        raise DataError(
            f"cannot load a tokenizer from '{name}': {first} Give a name of the hub, a directory, a vocab.txt, or a "
            "vocab.json beside its merges.txt"
        ) from error
    if not isinstance(tokenizer, PreTrainedTokenizerFast):
        raise DataError(f"'{name}' has no fast tokenizer, which offsets and packing need; save one as tokenizer.json")
    return tokenizer
