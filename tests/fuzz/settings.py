"""Values for the settings of study files and runs, drawn from their schemas: a new setting is tried once it exists."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from itertools import product
from random import Random
from typing import Any

from pydantic import BaseModel

from . import mutations

Schema = Mapping[str, Any]
Path = tuple[str | int, ...]
PLAIN: tuple[Any, ...] = (None, True, False, 0, 1, -1, 3, 0.5, 1e-4, "x", [1, 2], [1e-3, 3e-3], ["a"], [])
LARGEST = 2**53


class Settings:
    """The places of a valid example at which its schema allows settings, and values for each."""

    def __init__(
        self, kind: type[BaseModel], example: Mapping[str, Any], words: tuple[str, ...], without: tuple[str, ...] = ()
    ) -> None:  # fmt: skip
        self._schema = kind.model_json_schema()
        for section, name in product([self._schema, *self._schema["$defs"].values()], without):
            section["properties"].pop(name, None)
        self._text = json.dumps(example)
        self.places = dict(self._list_places(self._schema, example, ()))
        paths = (".".join(map(str, path)) for path in self.places)
        self._words = (*dict.fromkeys([*_list_words(example), *words, *paths, ""]),)

    def pick(self, random: Random, *, limit: float = LARGEST) -> tuple[Path, Any]:
        """Return a place and a value for it: one that the schema allows, below a limit, or any other."""
        path, schema = random.choice(list(self.places.items()))
        is_allowed = random.random() < 0.7
        return path, self._draw(random, schema, limit) if is_allowed else random.choice(mutations.VALUES)

    def change_example(self, random: Random, *, limit: float = LARGEST) -> dict[str, Any]:
        """Return the example with one to three changes."""
        content: dict[str, Any] = json.loads(self._text)
        for _ in range(random.randint(1, 3)):
            path, value = self.pick(random, limit=limit)
            _put(content, path, value)
        return content

    def _list_places(self, schema: Schema, content: Any, path: Path) -> Iterator[tuple[Path, Schema]]:
        if path:
            yield path, schema
        for option in self._list_options(schema):
            if "properties" in option and isinstance(content, Mapping | None):
                names = option["properties"].items()
                yield from self._list_children({**dict(names)}, content or {}, path)
            elif (entry := _find_entry(option)) is not None and content:
                places = content if isinstance(content, Mapping) else range(len(content))
                yield from self._list_children(dict.fromkeys(places, entry), content, path)

    def _list_children(
        self, schemas: Mapping[Any, Schema], content: Any, path: Path
    ) -> Iterator[tuple[Path, Schema]]:  # fmt: skip
        for key, schema in schemas.items():
            child = content.get(key) if isinstance(content, Mapping) else content[key]
            yield from self._list_places(schema, child, (*path, key))

    def _list_options(self, schema: Schema) -> list[Schema]:
        """Return the schemas of which a value has one, with names replaced by what they stand for."""
        if "$ref" in schema:
            return [self._schema["$defs"][schema["$ref"].rpartition("/")[2]]]
        return (
            [option for one in schema["anyOf"] for option in self._list_options(one)] if "anyOf" in schema else [schema]
        )

    def _draw(self, random: Random, schema: Schema, limit: float) -> Any:
        schema = random.choice(self._list_options(schema))
        if "const" in schema or "enum" in schema:
            return random.choice(schema.get("enum", [schema.get("const")]))
        kind = schema.get("type")
        if kind in ("integer", "number"):
            return _draw_number(random, schema, limit)
        if kind == "array":
            return self._draw_list(random, schema, limit)
        if kind == "object":
            return self._draw_table(random, schema, limit)
        choices = {"boolean": (True, False), "null": (None,), "string": self._words}
        return random.choice(choices.get(str(kind), (*PLAIN, *self._words)))

    def _draw_list(self, random: Random, schema: Schema, limit: float) -> list[Any]:
        length = random.randint(schema.get("minItems", 0), min(schema.get("maxItems", 3), 3))
        entries = schema.get("prefixItems") or [schema.get("items", {})] * length
        return [self._draw(random, entry, limit) for entry in entries]

    def _draw_table(self, random: Random, schema: Schema, limit: float) -> dict[str, Any]:
        if "properties" in schema:
            required = schema.get("required", ())
            chosen = {
                name: one for name, one in schema["properties"].items() if name in required or random.random() < 0.3
            }
        else:
            chosen = dict.fromkeys(random.sample(self._words, random.randint(1, 2)), _find_entry(schema) or {})
        return {name: self._draw(random, one, limit) for name, one in chosen.items()}


def write_toml(content: Mapping[str, Any]) -> bytes:
    """Write plain data as TOML; an entry that is None is left out, as in a file that does not name it."""
    return "".join(f"{_quote(key)} = {_write(value)}\n" for key, value in content.items() if value is not None).encode(
        "utf-8", "surrogatepass"
    )


def write_value(value: Any) -> str:
    """Write a value as `--set` reads it."""
    return "none" if value is None else _write(value)


def _write(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_quote(key)} = {_write(one)}' for key, one in value.items() if one is not None)}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_write(one) for one in value if one is not None)}]"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return _quote(value) if isinstance(value, str) else json.dumps(value)


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _find_entry(schema: Schema) -> Schema | None:
    """Return the schema of an entry of a list, or of a table whose names are free."""
    if schema.get("type") == "array":
        return schema.get("items")
    entries = schema.get("additionalProperties") or next(iter(schema.get("patternProperties", {}).values()), None)
    return entries if isinstance(entries, Mapping) else None


def _draw_number(random: Random, schema: Schema, limit: float) -> float:
    lower = schema.get("minimum", schema.get("exclusiveMinimum", -limit))
    upper = min(schema.get("maximum", schema.get("exclusiveMaximum", LARGEST)), max(limit, lower))
    if schema["type"] == "integer":
        return random.choice([number for number in (lower, lower + 1, 2, 3, 7, upper) if lower <= number <= upper])
    return random.choice([number for number in (lower, 1e-300, 1e-4, 0.3, 1, 2.5, upper) if lower <= number <= upper])


def _list_words(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from value
    for entry in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
        yield from _list_words(entry)


def _put(content: Any, path: Path, value: Any) -> None:
    """Set a value; an earlier change of a part above it makes this one have no place, and then it is left out."""
    for step in path[:-1]:
        content = content.setdefault(step, {}) if isinstance(content, dict) else _get_entry(content, step)
    if isinstance(content, dict) or _get_entry(content, path[-1]) is not None:
        content[path[-1]] = value


def _get_entry(content: Any, step: str | int) -> Any:
    is_there = isinstance(content, list) and isinstance(step, int) and step < len(content)
    return content[step] if is_there else None
