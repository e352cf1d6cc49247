"""Datasets of the Hugging Face hub; without a network the error names a file to use instead."""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from attnlab.errors import DataError
from attnlab.hub import find_connection_problem

from ..row import Row, hash_rows

FILES = {
    "squad": "a SQuAD .json such as dev-v1.1.json",
    "glue": "a GLUE .tsv such as SST-2/dev.tsv",
    "boolq": "a .jsonl with question, passage and label",
    "wikitext": "a text file such as wiki.train.tokens",
}
"""Files to use instead, by a word of the dataset's name."""


@dataclass(frozen=True)
class HubReader:
    """Reads one split of a dataset, by NAME or NAME/CONFIG; NAME may be OWNER/NAME."""

    kind: ClassVar[str] = "hf"

    name: str
    split: str | None

    def rows(self) -> Iterator[tuple[str, Row]]:
        """Yield the rows of the local copy, which is downloaded first and memory-mapped."""
        for number, row in enumerate(self._load(), start=1):
            yield f"hf:{self.name}, row {number}", dict(row)

    def digest(self) -> str:
        """Hash the rows themselves, since a dataset on the hub may change."""
        return _hash_dataset(self)

    def _load(self) -> Any:
        # Imported here: it takes a second and Arrow's memory, and only the hub needs it.
        import datasets

        names = parse_name(self.name)
        if problem := find_connection_problem(names[0][0], is_dataset=True):
            raise _refuse(self.name, f"it cannot be reached ({problem}); HF_HUB_OFFLINE=1 reads an earlier download")
        for name, config in names:
            try:
                dataset = datasets.load_dataset(name, config, split=self.split)
            except datasets.exceptions.DatasetNotFoundError as missing:
                problem = problem or str(missing)
            except (OSError, ValueError) as error:
                raise _refuse(self.name, str(error)) from error
            else:
                if self.split is not None:
                    return dataset
                if len(dataset) > 1:
                    raise DataError(f"hf:{self.name} has several splits; give split= one of {', '.join(dataset)}")
                return next(iter(dataset.values()))
        raise _refuse(self.name, problem)


@functools.cache
def _hash_dataset(reader: HubReader) -> str:
    return hash_rows(row for _, row in reader.rows())


def parse_name(name: str) -> list[tuple[str, str | None]]:
    """Return the possible names and configs of NAME/CONFIG, the likelier first: OWNER/NAME, or NAME with a config."""
    parts = name.strip("/").split("/")
    if len(parts) == 1:
        return [(parts[0], None)]
    if len(parts) == 2:
        return [(name, None), (parts[0], parts[1])]
    return [("/".join(parts[:2]), "/".join(parts[2:]))]


def _refuse(name: str, problem: str) -> DataError:
    instead = next((file for word, file in FILES.items() if word in name.lower()), "a .jsonl, .csv, .txt or .parquet")
    first = problem.strip().splitlines()[0].rstrip(".") if problem.strip() else "unknown error"
    return DataError(f"cannot download hf:{name} from the hub: {first}. Without a network, use a file: {instead}")
