r"""LaTeX to plain text: `\textbf{$82.1_{\pm 0.4}$}` is `82.1 ± 0.4`."""

import re
from collections.abc import Iterator

SYMBOLS = {
    r"\pm": "±", r"\uparrow": "↑", r"\downarrow": "↓", r"\times": "×", r"\infty": "∞", r"\alpha": "α", r"\beta": "β",
    r"\lambda": "λ", r"\textemdash": "—", r"\textendash": "–", r"\textpm": "±", r"\textasciitilde": "~",
}  # fmt: skip
FOOTNOTES = {
    r"\dagger": "†", r"\dag": "†", r"\textdagger": "†", r"\ddagger": "‡", r"\ddag": "‡", r"\textdaggerdbl": "‡",
    r"\ast": "*", r"\star": "*", r"\textasteriskcentered": "*", r"\S": "§", r"\P": "¶",
}  # fmt: skip
"""Marks of footnotes."""
ESCAPED = re.compile(r"\\([%_&#$])")
SPACES = re.compile(r"\\[,;:! /]|~|\\q?quad\b|\\hfill\b|\\phantom\{[^{}]*\}")
DROPPED = re.compile(
    r"\\(?:cite[a-z]*|ref|label|footnote(?:mark|text)?|cellcolor|rowcolor|color|vspace|hspace|rule|fontsize|tnote"
    r"|rotatebox(?=\{[^{}]*\}\{)|textcolor(?=\{[^{}]*\}\{)|raisebox(?=\{[^{}]*\}\{)|colorbox(?=\{[^{}]*\}\{)"
    r"|resizebox(?=\{[^{}]*\}\{))\*?(?:\[[^\]]*\])*(?:\{[^{}]*\})?"
)
WRAPPED = re.compile(r"\\[A-Za-z]+\*?\s*(?:\[[^\]]*\])?\{([^{}]*)\}")
COMMAND = re.compile(r"\\[A-Za-z]+\*?\s?")
NUMBER = r"\d*\.?\d+"
SUBSCRIPT = re.compile(rf"(?<=[\d%}}])\s*[_^]\s*\{{?\s*\(?\s*±?\s*({NUMBER}\s*%?)\s*\)?\s*\}}?")
SUPERSCRIPT = re.compile(r"\^\s*(?:\{[^{}]*\}|\S)")


def to_plain_text(cell: str) -> str:
    """Return the text of a cell without LaTeX commands."""
    text = " ".join(cell.split())
    for symbol, sign in SYMBOLS.items():
        text = re.sub(re.escape(symbol) + r"(?![A-Za-z])", f" {sign} ", text)
    for symbol, sign in FOOTNOTES.items():
        text = re.sub(re.escape(symbol) + r"(?![A-Za-z])\s?", sign, text)
    text = text.replace(r"\textsuperscript", "^")
    text = ESCAPED.sub(lambda match: {"_": "\0"}.get(match[1], match[1]), text).replace("$", "")
    text = SPACES.sub(" ", text).replace("\\\\", " ")
    while (shorter := DROPPED.sub("", text)) != text:
        text = shorter
    while (shorter := WRAPPED.sub(r"\1", text)) != text:
        text = shorter
    text = re.sub(r"\{\s*,\s*\}", ",", COMMAND.sub("", text))
    text = re.sub(rf"\{{\s*({NUMBER}%?)\s*\}}", r"\1", text)  # {82.1}_{0.4}
    if re.match(rf"\W*{NUMBER}", text):
        text = SUPERSCRIPT.sub("", SUBSCRIPT.sub(r" ± \1", text))
    else:
        text = SUPERSCRIPT.sub(lambda match: re.sub(r"[^†‡§¶*]", "", match[0]), text)
    text = text.replace("{", "").replace("}", "").replace("\0", "_").replace("---", "—").replace("``", '"')
    text = " ".join(text.replace("''", '"').replace("--", "–").split())
    return re.sub(r"\s+([),])", r"\1", text)


def split_outside_braces(text: str, sign: str) -> Iterator[tuple[int, str]]:
    """Yield the parts between a sign that stands outside braces, each with its position; an escaped & is no sign."""
    depth = begin = at = 0
    while at < len(text):
        if depth == 0 and text.startswith(sign, at):
            yield begin, text[begin:at]
            at += len(sign)
            begin = at
            continue
        if text[at] == "\\":
            at += 2
            continue
        depth = max(0, depth + {"{": 1, "}": -1}.get(text[at], 0))
        at += 1
    yield begin, text[begin:]


def read_groups(text: str, position: int, number: int) -> tuple[list[str], int]:
    """Read up to `number` groups in braces, skipping options in brackets; return them, and where they end."""
    groups: list[str] = []
    while len(groups) < number:
        skipped = re.compile(r"\s*(?:\[[^\]]*\]\s*)*").match(text, position)
        position = skipped.end() if skipped else position
        if text[position : position + 1] == "*" and groups:
            groups.append("*")
            position += 1
            continue
        if text[position : position + 1] != "{":
            break
        depth, at = 1, position + 1
        while at < len(text) and depth:
            if text[at] == "\\":
                at += 1
            else:
                depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
        groups.append(text[position + 1 : at - 1])
        position = at
    return groups, position
