"""JSON files: SQuAD's articles, paragraphs and questions, read as one row per question; or a list of objects."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attnlab.errors import DataError
from attnlab.inputs import parse_json

from .files import BLOCK, BROKEN, decode, describe_damage, open_bytes, refuse_to_open


def read_json(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield rows with their numbers from 1. The whole file is held in memory, as JSON cannot be read line by line."""
    content = _parse(path)
    if isinstance(content, dict) and isinstance(content.get("data"), list):
        yield from enumerate(_list_questions(path, content["data"]), start=1)
    elif isinstance(content, list):
        for number, row in enumerate(content, start=1):
            if not isinstance(row, dict):
                raise DataError(f"{path}, row {number}: needs an object, not {json.dumps(row)[:40]}")
            yield number, row
    else:
        type_ = f"an object of {', '.join(map(repr, content))[:60]}" if isinstance(content, dict) else str(content)[:30]
        raise DataError(f'{path}: needs SQuAD\'s {{"data": [articles]}} or a list of objects, not {type_}')


def _parse(path: Path) -> Any:
    raw = bytearray()
    with open_bytes(path) as file:
        try:
            while block := file.read(BLOCK):
                raw += block
        except BROKEN as error:
            raise describe_damage(
                path, f" in or after row {_count_rows(raw.decode('utf-8', 'replace'))}", error
            ) from error
        except OSError as error:
            refuse_to_open(path, error)
    if not raw.strip():
        raise DataError(f"{path} is empty; it needs at least one row")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        for number, line in enumerate(bytes(raw).split(b"\n"), start=1):
            decode(path, number, line)
        raise
    try:
        return parse_json(text)
    except json.JSONDecodeError as error:
        # A SQuAD file is a single line, so the line number alone does not locate the error.
        row = _count_rows(text[: error.pos])
        is_cut = error.pos >= len(text.rstrip()) - 1 or error.msg.startswith("Unterminated")
        problem = "the file ends too early" if is_cut else error.msg
        raise DataError(
            f"{path}, line {error.lineno}, column {error.colno}, in or after row {row}: not JSON, {problem} "
            f"after {text[max(0, error.pos - 40) : error.pos]!r}; download or write the file again"
        ) from error


def _count_rows(text: str) -> int:
    """Count the questions that begin in a possibly truncated text."""
    return len(re.findall(r'"question"\s*:', text))


def _list_questions(path: Path, articles: list[Any]) -> Iterator[dict[str, Any]]:
    count = paragraph_number = 0
    for article_number, article in enumerate(articles, start=1):
        try:
            title = str(article.get("title", ""))
            paragraphs = _check_list(article["paragraphs"])
        except (AttributeError, KeyError, TypeError) as error:
            raise DataError(f"{path}, article {article_number}: needs 'title' and 'paragraphs'") from error
        for paragraph in paragraphs:
            try:
                shared = {"title": title, "context": _check_text(paragraph["context"]), "paragraph": paragraph_number}
                questions = _check_list(paragraph["qas"])
            except (KeyError, TypeError) as error:
                raise DataError(f"{path}, article {title!r}: a paragraph needs 'context' and 'qas'") from error
            for question in questions:
                count += 1
                yield _read_question(path, count, question, shared)
            paragraph_number += 1


def _check_list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError("a list is needed")
    return value


def _check_text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("text is needed")
    return value


def _read_question(path: Path, number: int, question: Any, shared: dict[str, Any]) -> dict[str, Any]:
    try:
        answers = _check_list(question.get("answers", []))
        return {
            "id": str(question["id"]),
            **shared,
            "question": _check_text(question["question"]),
            "answers": {
                "text": [_check_text(answer["text"]) for answer in answers],
                "answer_start": [int(answer["answer_start"]) for answer in answers],
            },
            "is_impossible": bool(question.get("is_impossible", False)),
        }
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise DataError(
            f"{path}, row {number}: a question needs 'id', 'question' and 'answers' with 'text' and 'answer_start'; "
            f"this one has {', '.join(map(repr, question))[:80] if isinstance(question, dict) else question!r}"
        ) from error
