r"""LaTeX macros: those that a file defines are expanded; usual names of spreads, as in `\std{0.4}`, are read as ±."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ..figure import parse_figure
from .latex_text import STYLES, read_groups, replace_signs, to_plain_text

NAME = r"(?:\{\s*\\(?P<braced>[A-Za-z]+)\s*\}|\\(?P<bare>[A-Za-z]+))"
COMMAND_DEFINITION = re.compile(
    r"\\(?:(?:re)?newcommand|providecommand|DeclareRobustCommand)\*?\s*"
    + NAME
    + r"\s*(?:\[(?P<number>\d)\])?\s*(?:\[(?P<default>[^\]]*)\])?\s*(?=\{)"
)
TEX_DEFINITION = re.compile(r"\\[egx]?def\s*" + NAME + r"\s*(?P<arguments>(?:#\d)*)\s*(?=\{)")
DOCUMENT_DEFINITION = re.compile(
    r"\\(?:New|Renew|Provide|Declare)DocumentCommand\s*" + NAME + r"\s*\{(?P<letters>[m\s]*)\}\s*(?=\{)"
)
DEFINITIONS = (COMMAND_DEFINITION, TEX_DEFINITION, DOCUMENT_DEFINITION)
USE = re.compile(r"\\([A-Za-z]+)")
ARGUMENT = re.compile(r"#(\d)")
STYLE = re.compile(rf"\\(?:{'|'.join(sorted(STYLES))})(?![A-Za-z])|[{{}}$\s]")
AFTER_SIGN = re.compile(r"(?:\\(?:text)?pm|±)\s*[${\s]*$")
MAX_PASSES = 10
MAX_GROWTH = 200_000
"""Characters that macros may add, so that macros that use each other come to an end."""


@dataclass(frozen=True)
class LatexMacro:
    """A macro: how many arguments it has, the default of the first if it is optional, and its text with #1, #2, ….

    is_spread: known by its name only, and so expanded only if its arguments are numbers.
    """

    num_arguments: int
    text: str
    default: str | None = None
    is_spread: bool = False


SPREADS: Mapping[str, LatexMacro] = {
    **dict.fromkeys(("std", "sd", "stdev", "stddev"), LatexMacro(1, r" \pm #1", is_spread=True)),
    **dict.fromkeys(("ms", "meanstd", "meansd", "mstd"), LatexMacro(2, r"#1 \pm #2", is_spread=True)),
}
"""Usual names of macros for an SD, and for a mean with its SD; their packages are often not in the file."""


def expand_macros(text: str) -> str:
    """Return a LaTeX text with its macros expanded and their definitions removed; its lines stay in place."""
    macros = dict(SPREADS)
    for definition in DEFINITIONS:
        text = _take_definitions(text, definition, macros)
    longest = len(text) + MAX_GROWTH
    for _ in range(MAX_PASSES):
        expanded = _expand_once(text, macros, longest)
        if expanded == text or len(expanded) > longest:
            break
        text = expanded
    return text


def _take_definitions(text: str, definition: re.Pattern[str], macros: dict[str, LatexMacro]) -> str:
    """Add the macros that a text defines, and return it without the definitions."""
    kept, end = [], 0
    for match in definition.finditer(text):
        if match.start() < end:
            continue
        groups, after = read_groups(text, match.end(), 1)
        if not groups:
            continue
        name, parts = match["braced"] or match["bare"], match.groupdict()
        arguments = int(parts.get("number") or 0) or (parts.get("arguments") or "").count("#")
        arguments = arguments or (parts.get("letters") or "").count("m")
        # A usual name that only changes the size of its arguments, as \std often does, still is a spread.
        is_style = re.fullmatch(r"#1(#2)?", STYLE.sub("", replace_signs(groups[0]))) is not None
        if not (name in SPREADS and is_style and arguments == SPREADS[name].num_arguments):
            macros[name] = LatexMacro(arguments, groups[0].replace("\n", " "), parts.get("default"))
        kept += [text[end : match.start()], "\n" * text.count("\n", match.start(), after)]
        end = after
    return "".join([*kept, text[end:]])


def _expand_once(text: str, macros: Mapping[str, LatexMacro], longest: int) -> str:
    """Replace each use of a macro by its text."""
    kept: list[str] = []
    end, length = 0, len(text)
    for use in USE.finditer(text):
        macro = macros.get(use[1])
        if macro is None or use.start() < end or length > longest:
            continue
        arguments, after = _read_arguments(text, use.end(), macro)
        if len(arguments) < macro.num_arguments:
            continue
        if macro.is_spread and any(parse_figure(to_plain_text(argument)) is None for argument in arguments):
            continue
        before = text[max(end, use.start() - 20) : use.start()]
        body = "#1" if macro.is_spread and macro.num_arguments == 1 and AFTER_SIGN.search(before) else macro.text
        shown = ARGUMENT.sub(lambda match, given=arguments: "".join(given[int(match[1]) - 1 : int(match[1])]), body)  # type: ignore[misc]
        lost = max(0, text.count("\n", use.start(), after) - shown.count("\n"))
        kept += [text[end : use.start()], shown, "\n" * lost]
        length += len(shown)
        end = after
    return "".join([*kept, text[end:]])


def _read_arguments(text: str, position: int, macro: LatexMacro) -> tuple[list[str], int]:
    """Read the arguments of a macro; return them, and where they end. Spaces behind a name are no text."""
    if not macro.num_arguments:
        spaces = re.compile(r"[ \t]*").match(text, position)
        return [], spaces.end() if spaces else position
    arguments: list[str] = []
    if macro.default is not None:
        option = re.compile(r"\s*\[([^\]]*)\]").match(text, position)
        arguments, position = ([option[1]], option.end()) if option else ([macro.default], position)
    groups, position = read_groups(text, position, macro.num_arguments - len(arguments))
    return [*arguments, *groups], position
