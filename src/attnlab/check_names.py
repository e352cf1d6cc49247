"""The names of the checks of an audit, and which of them is meant: without torch, so that a wrong name is an error at
once."""

from collections.abc import Iterable, Mapping

from attnlab.errors import RequestError, closest

NAMES: Mapping[str, tuple[str, ...]] = {
    "mechanism": (
        "causal leak", "prefix consistency", "padding and batch invariance", "gradient flow", "numerics",
        "equivalences", "magnitude against length", "weights", "value path", "cost", "i.i.d. test",
    ),
    "model": (
        "causal leak", "prefix consistency", "padding and batch invariance", "gradient flow", "numerics",
        "own positions",
    ),
}  # fmt: skip
"""The checks of attnlab by what they are about, in their order: first what makes a comparison worthless, then what
spoils a run, then descriptions."""


def find_check(name: str, kind: str, known: Mapping[str, Iterable[str]] = NAMES) -> str:
    """Return the full name of a check; the error says so if it is a check of the other kind of subject."""
    try:
        return match_name(name, known[kind])
    except UnknownCheckError:
        other = "model" if kind == "mechanism" else "mechanism"
        letters = normalize_name(name)
        if letters and any(letters in normalize_name(each) for each in known[other]):
            raise RequestError(f"'{name}' is a check of a {other}, not of a {kind}") from None
        raise


def match_name(name: str, known: Iterable[str]) -> str:
    """Return the known name that is meant: the name itself, or the only one that contains it."""
    names = list(known)
    if name in names:
        return name
    letters = normalize_name(str(name))
    matches = [other for other in names if letters and letters in normalize_name(other)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise UnknownCheckError(f"'{name}' could be any of {', '.join(matches)}")
    # People often write, and misspell, one word of a name.
    hint = closest(str(name), [*names, *(word for other in names for word in other.split())])
    raise UnknownCheckError(f"no check is named '{name}'" + (hint or f"; there are {', '.join(names)}"))


def normalize_name(name: str) -> str:
    """Return only the letters and digits of a name, by which names are compared."""
    return "".join(character for character in name.lower() if character.isalnum())


class UnknownCheckError(RequestError, KeyError):
    """A name that fits no check, or more than one."""

    def __str__(self) -> str:
        return str(self.args[0])
