r"""LaTeX to plain text: `\textbf{$82.1_{\pm 0.4}$}` is `82.1 ± 0.4`."""

import re
from collections.abc import Iterator

from ..figure import parse_figure

SYMBOLS = {
    r"\Delta": "Δ", r"\triangle": "Δ",
    r"\pm": "±", r"\uparrow": "↑", r"\downarrow": "↓", r"\times": "×", r"\infty": "∞",
    r"\textemdash": "—", r"\textendash": "–", r"\textpm": "±", r"\textasciitilde": "~",
}  # fmt: skip
LETTERS = {
    r"\alpha": "α", r"\beta": "β", r"\gamma": "γ", r"\delta": "δ", r"\epsilon": "ε", r"\varepsilon": "ε", r"\zeta": "ζ",
    r"\eta": "η", r"\theta": "θ", r"\kappa": "κ", r"\lambda": "λ", r"\mu": "μ", r"\nu": "ν", r"\rho": "ρ",
    r"\sigma": "σ", r"\tau": "τ", r"\phi": "φ", r"\varphi": "φ", r"\chi": "χ", r"\psi": "ψ", r"\omega": "ω",
}  # fmt: skip
"""Letters, which are parts of words: no space is added."""
FOOTNOTES = {
    r"\dagger": "†", r"\dag": "†", r"\textdagger": "†", r"\ddagger": "‡", r"\ddag": "‡", r"\textdaggerdbl": "‡",
    r"\ast": "*", r"\star": "*", r"\textasteriskcentered": "*", r"\S": "§", r"\P": "¶",
}  # fmt: skip
"""Marks of footnotes."""
ESCAPED = re.compile(r"\\([%_&#$])")
SPACES = re.compile(r"\\[,;:! /]|~|\\q?quad\b|\\hfill\b|\\[hv]?phantom\{[^{}]*\}")
DROPPED = re.compile(
    r"\\(?:cite[a-z]*|ref|label|(?:table)?footnote(?:mark|text)?|cellcolor|rowcolor|color|vspace|hspace|rule|fontsize|tnote"
    r"|rotatebox(?=\{[^{}]*\}\{)|textcolor(?=\{[^{}]*\}\{)|raisebox(?=\{[^{}]*\}\{)|colorbox(?=\{[^{}]*\}\{)"
    r"|scalebox(?=\{[^{}]*\}\{)|resizebox(?=\{[^{}]*\}\{))(?![A-Za-z])\*?(?:\[[^\]]*\])*(?:\{[^{}]*\})?"
)
WRAPPED = re.compile(r"\\[A-Za-z]+\*?\s*(?:\[[^\]]*\])?\{([^{}]*)\}")
COMMAND = re.compile(r"\\[A-Za-z]+\*?\s?")
USE = re.compile(r"\\([A-Za-z]+)\*?")
STYLES = frozenset({
    "textbf", "textit", "textrm", "textsf", "texttt", "textsc", "textsl", "textmd", "textup", "textnormal", "emph",
    "text", "mathbf", "mathrm", "mathit", "mathsf", "mathtt", "mathcal", "boldsymbol", "bm", "pmb", "bf", "it", "rm",
    "sf", "tt", "bfseries", "itshape", "tiny", "scriptsize", "footnotesize", "small", "normalsize", "large",
    "scriptstyle", "scriptscriptstyle", "textstyle", "underline", "uline", "uuline", "uwave", "dashuline", "dotuline",
    "overline", "ul", "hl", "sout", "mbox", "hbox", "makebox", "fbox", "boxed", "framebox", "ensuremath", "num",
    "tablenum", "SI", "qty", "makecell", "thead", "shortstack", "color", "colorbox", "textcolor", "raisebox", "smash",
    "rlap", "llap", "mathrlap", "multicolumn", "multirow", "left", "right", "big", "bigl", "bigr", "centering",
    "bold", "textbfseries",
})  # fmt: skip
"""Commands that print their argument in another style."""
NUMBER = r"\d*\.?\d+"
SUBSCRIPT = re.compile(rf"(?<=[\d%}}])\s*[_^]\s*\{{?\s*\(?\s*±?\s*({NUMBER}\s*%?)\s*\)?\s*\}}?")
FOOTNOTE_NUMBER = re.compile(r"\^\s*(?:\{\s*\(?\d{1,2}(?:\s*,\s*\d{1,2})*\)?\s*\}|\d(?![\d.]))")
"""A small whole number as a superscript without ± is the mark of a footnote."""
SUPERSCRIPT = re.compile(r"\^\s*(?:\{[^{}]*\}|\S)")


def replace_signs(cell: str) -> str:
    """Return a cell with its symbols as characters, and without commands that print nothing of it."""
    text = " ".join(cell.split())
    for symbol, sign in SYMBOLS.items():
        text = re.sub(re.escape(symbol) + r"(?![A-Za-z])", f" {sign} ", text)
    for symbol, sign in (LETTERS | FOOTNOTES).items():
        text = re.sub(re.escape(symbol) + r"(?![A-Za-z])\s?", sign, text)
    text = text.replace(r"\textsuperscript", "^").replace(r"\textsubscript", "_")
    text = ESCAPED.sub(lambda match: {"_": "\0"}.get(match[1], match[1]), text).replace("$", "")
    text = SPACES.sub(" ", text.replace("\\\\", " "))
    # The last argument of \textcolor and the like is printed.
    while (shorter := DROPPED.sub(_keep_style, text)) != text:
        text = shorter
    return text


def _keep_style(match: re.Match[str]) -> str:
    return r"\textcolor" if match.string[match.end() : match.end() + 1] == "{" else ""


def to_plain_text(cell: str) -> str:
    """Return the text of a cell without LaTeX commands."""
    text = replace_signs(cell)
    while (shorter := WRAPPED.sub(r"\1", text)) != text:
        text = shorter
    text = re.sub(r"\{\s*,\s*\}", ",", COMMAND.sub("", text))
    text = re.sub(rf"(?<!\^)(?<!\^ )\{{\s*({NUMBER}%?)\s*\}}", r"\1", text)  # {82.1}_{0.4}
    if re.match(rf"\W*{NUMBER}", text):
        text = SUPERSCRIPT.sub("", SUBSCRIPT.sub(r" ± \1", FOOTNOTE_NUMBER.sub("", text)))
    else:
        text = SUPERSCRIPT.sub(lambda match: re.sub(r"[^†‡§¶*]", "", match[0]), text)
    text = text.replace("{", "").replace("}", "").replace("\0", "_").replace("---", "—").replace("``", '"')
    text = " ".join(text.replace("''", '"').replace("--", "–").split())
    return re.sub(r"\s+([),])", r"\1", text)


def find_unclear_macro(cell: str) -> str:
    """Return the first macro behind a number whose effect on the number is not known; empty if there is none.

    A macro that is not known may do anything with its argument, and between two numbers even a change of font leaves
    open what the second is.
    """
    text = replace_signs(cell)
    for use in USE.finditer(text):
        before = to_plain_text(text[: use.start()]).strip()
        groups, after = read_groups(text, use.end(), 9)
        shown = to_plain_text(" ".join(groups) or text[use.end() :]).strip()
        is_behind_number = text[: use.start()].rstrip(" {}$")[-1:].isalnum() and parse_figure(before) is not None
        is_number = re.match(r"[\d.]", shown) is not None
        has_text = any(group.strip() for group in groups)
        if is_behind_number and (is_number or (has_text and use[1] not in STYLES)):
            return f"\\{use[1]}"
        # Of several arguments in a row, such as \foo{82.1}{0.4}, only styles print one after the other.
        numbers = [group for group in groups if re.match(r"[\d.]", to_plain_text(group))]
        is_in_number = len(groups) == 1 and bool(re.match(r"[\d.]", text[after:]))
        if not before and numbers and use[1] not in STYLES and (len(numbers) > 1 or is_in_number):
            return f"\\{use[1]}"
    return ""


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
