"""Load tokenizers by name, from a directory, or from a plain vocabulary, as fast tokenizers of transformers."""

import json
from pathlib import Path

from attnlab.checksums import DamageError, verify_sums
from attnlab.errors import DataError, PretrainedError
from attnlab.inputs import expand_path, parse_json
from attnlab.pretrained import load_pretrained

from ..sources.files import ending_of, open_bytes, read_lines, refuse_to_open
from .builders import BERT, FastTokenizer, build_bpe, build_wordpiece, find_roles, parse_backend, wrap

PLAIN = (("vocab.txt", None), ("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe"))
"""Vocabularies of a directory without a config, and the files of their merges."""


def load_tokenizer(name: str | Path) -> FastTokenizer:
    """Load a tokenizer: a name of the hub, a directory, tokenizer.json, vocab.txt, or vocab.json beside merges.txt."""
    path = expand_path(name)
    if path.is_dir():
        return _load_directory(path)
    if path.is_file():
        return _load_file(path)
    if path.suffix or str(name).count("/") > 1 or str(name).startswith((".", "/", "~")):
        refuse_to_open(path, FileNotFoundError())
    return _load_from_hub(str(name))


def _load_directory(path: Path) -> FastTokenizer:
    try:
        verify_sums(path, skipped=".safetensors")  # weights are verified by those who read them
    except DamageError as error:
        raise DataError(str(error)) from error
    if any((path / name).exists() for name in ("tokenizer_config.json", "config.json")):
        return _load_with_transformers(str(path), is_local=True)
    if (path / "tokenizer.json").exists():
        return _load_file(path / "tokenizer.json")
    for vocabulary, _ in PLAIN:
        files = sorted(path.glob(f"*{vocabulary}*"))
        if len(files) == 1:
            return _load_file(files[0])
        if files:
            raise DataError(f"{path} has several vocabularies; give one of {', '.join(file.name for file in files)}")
    raise DataError(
        f"{path} has no tokenizer: it needs tokenizer.json, vocab.txt, or vocab.json and merges.txt; save the model's "
        "tokenizer in its folder"
    )


def _load_file(path: Path) -> FastTokenizer:
    if ending_of(path) == ".txt":
        return _load_wordpiece(path)
    with open_bytes(path) as file:
        try:
            content = parse_json(file.read().decode("utf-8"))
        except (ValueError, EOFError) as error:
            raise DataError(f"{path} is not a vocabulary in JSON: {error}") from error
    if not isinstance(content, dict):
        raise DataError(f"{path} is not a vocabulary: it needs an object of tokens and their ids")
    if isinstance(content.get("model"), dict):
        return wrap(parse_backend(json.dumps(content), path), find_roles(content))
    return build_bpe(content, _read_merges(_find_merges(path)))


def _load_wordpiece(path: Path) -> FastTokenizer:
    vocabulary: dict[str, int] = {}
    for number, token in read_lines(path):
        if token in vocabulary:
            raise DataError(f"{path}, line {number}: {token!r} repeats line {vocabulary[token] + 1}; remove one")
        vocabulary[token] = number - 1
    missing = [token for token in BERT.values() if token not in vocabulary]
    if missing:
        raise DataError(f"{path} is not BERT's vocabulary: it has no {', '.join(missing)}; give one token per line")
    # The file does not state whether text is lowercased; tokens with capitals would never occur if it were.
    is_cased = any(token != token.lower() for token in vocabulary if not token.startswith("["))
    return build_wordpiece(vocabulary, is_lowercase=not is_cased)


def _find_merges(path: Path) -> Path:
    """Find the merges beside a vocabulary, compressed or not."""
    for vocabulary, merges in PLAIN[1:]:
        if vocabulary in path.name and merges is not None:
            files = sorted(path.parent.glob(path.name.split(vocabulary)[0] + merges + "*"))
            if files:
                return files[0]
            raise DataError(f"{path} needs its merges beside it; there is no {merges} in {path.parent}")
    raise DataError(f"{path}: no merges belong to a file of this name; name the files vocab.json and merges.txt")


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


def _load_from_hub(name: str) -> FastTokenizer:
    try:
        # A tokenizer that was downloaded before needs no network.
        return _load_with_transformers(name, is_local=True)
    except DataError:
        return _load_with_transformers(name, is_local=False)


def _load_with_transformers(name: str, is_local: bool) -> FastTokenizer:
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    try:
        tokenizer = load_pretrained(AutoTokenizer, name, local_files_only=is_local)
    except PretrainedError as error:
        raise DataError(
            f"cannot load a tokenizer from '{name}': {error}. Give a name of the hub, a directory, a vocab.txt, or a "
            "vocab.json beside its merges.txt"
        ) from error
    if not isinstance(tokenizer.model_max_length, int | float):
        raise DataError(f"the tokenizer of '{name}' has a model_max_length that is not a number; save it again")
    if not isinstance(tokenizer, PreTrainedTokenizerFast):
        raise DataError(f"'{name}' has no fast tokenizer, which offsets and packing need; save one as tokenizer.json")
    return tokenizer
