"""The first sentence of a docstring, which lists of verbs and stages show."""

import inspect
import re

END = re.compile(r"(?<!\bal)(?<!\be\.g)(?<!\bi\.e)\.\s+(?=[A-Z`'\"])")
"""A full stop that ends a sentence: before a capital letter, and not that of "et al."."""


def read_first_sentence(described: object) -> str:
    """Return the first sentence of a docstring, over the ends of its lines."""
    paragraph = (inspect.getdoc(described) or "").partition("\n\n")[0]
    text = " ".join(paragraph.split())
    end = END.search(text)
    return text if end is None else text[: end.start() + 1]
