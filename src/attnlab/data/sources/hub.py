"""Datasets of the Hugging Face hub, through `datasets`; without a network the error says which file to give."""

from __future__ import annotations

import hashlib
import json
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from attnlab.errors import DataError

from .rows import Row

FILES = {
    "squad": "a SQuAD .json such as dev-v1.1.json",
    "glue": "a GLUE .tsv such as SST-2/dev.tsv",
    "boolq": "a .jsonl with question, passage and label",
    "wikitext": "a text file such as wiki.train.tokens",
}
"""What to give instead, by a word of the dataset's name."""
PATIENCE = 5.0
"""Seconds within which the hub must answer."""


@dataclass(frozen=True)
class HubReader:
    """One split of a dataset, by NAME or NAME/CONFIG, where NAME may itself be OWNER/NAME."""

    name: str
    split: str | None

    @property
    def kind(self) -> str:
        """The rows are as the dataset has them."""
        return "hf"

    def rows(self) -> Iterator[tuple[str, Row]]:
        """Yield the rows of the dataset's local copy, which is fetched first and mapped into memory."""
        for number, row in enumerate(self._load(), start=1):
            yield f"hf:{self.name}, row {number}", dict(row)

    def digest(self) -> str:
        """Hash the rows themselves, since a name on the hub may change what it stands for."""
        digest = hashlib.sha256()
        for _, row in self.rows():
            digest.update(json.dumps(row, sort_keys=True, default=str).encode())
        return digest.hexdigest()

    def _load(self) -> Any:
        # Imported here: it takes a second and Arrow's memory, and only the hub needs it.
        import datasets

        if said := why_unreachable():
            raise _refusal(self.name, said)
        said = ""
        for name, config in readings(self.name):
            try:
                found = datasets.load_dataset(name, config, split=self.split)
            except datasets.exceptions.DatasetNotFoundError as missing:
                said = said or str(missing)
            except (OSError, ValueError) as error:
                raise _refusal(self.name, str(error)) from error
            else:
                return found if self.split is not None else _only_split(self.name, found)
        raise _refusal(self.name, said)


def why_unreachable() -> str:
    """Return why the hub cannot be asked, or nothing. Its own client tries for half a minute, and noisily."""
    is_offline = os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "ON", "YES", "TRUE"}
    if is_offline or getproxies():
        return ""
    host = urlsplit(os.environ.get("HF_ENDPOINT", "https://huggingface.co"))
    try:
        with socket.create_connection((host.hostname, host.port or 443), timeout=PATIENCE):
            return ""
    except OSError as error:
        return f"{host.hostname} cannot be reached ({error}). What was fetched before is found with HF_HUB_OFFLINE=1."


def readings(name: str) -> list[tuple[str, str | None]]:
    """Return what NAME/CONFIG may mean, the likelier first: OWNER/NAME without a config, or NAME with one."""
    parts = name.strip("/").split("/")
    if len(parts) == 1:
        return [(parts[0], None)]
    if len(parts) == 2:
        return [(name, None), (parts[0], parts[1])]
    return [("/".join(parts[:2]), "/".join(parts[2:]))]


def _only_split(name: str, found: Any) -> Any:
    splits = list(found)
    if len(splits) > 1:
        raise DataError(f"hf:{name} has several splits; give split= one of {', '.join(splits)}")
    return found[splits[0]]


def _refusal(name: str, said: str) -> DataError:
    instead = next((file for word, file in FILES.items() if word in name.lower()), "a .jsonl, .csv, .txt or .parquet")
    first = said.strip().splitlines()[0].rstrip(".") if said.strip() else "it gave no reason"
    return DataError(f"cannot fetch hf:{name} from the hub: {first}. Without a network, give a file instead: {instead}")
