"""The results as a table in LaTeX, for a paper; it needs the package booktabs."""

from collections.abc import Sequence

from .cells import COLUMNS
from .headline import Headline
from .results import PhaseResults

CHOSEN = ("arm", "phase", "size", "mean", "SD", "seeds", "difference", "interval", "verdict")
SIGNS = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': "''", "−": "$-$", "–": "--", "±": r"$\pm$", "∞": r"$\infty$",
    "α": r"$\alpha$", "ρ": r"$\rho$", "…": r"\ldots{}", "≥": r"$\geq$", "≤": r"$\leq$", "×": r"$\times$",
}  # fmt: skip


def write_latex(headline: Headline, places: Sequence[PhaseResults]) -> str:
    """Write the table, with the question as its caption."""
    rows = [[COLUMNS[name](row) for name in CHOSEN] for place in places for row in place.rows]
    layout = "".join("r" if cell.is_number else "l" for cell in rows[0]) if rows else "l" * len(CHOSEN)
    lines = [
        r"% needs \usepackage{booktabs}", r"\begin{table}", r"\centering",
        rf"\caption{{{_escape(headline.question)} {_escape(headline.state)}}}",
        rf"\begin{{tabular}}{{{layout}}}", r"\toprule", rf"{' & '.join(CHOSEN)} \\", r"\midrule",
        *(rf"{' & '.join(_escape(cell.text) for cell in row)} \\" for row in rows),
        r"\bottomrule", r"\end{tabular}", r"\end{table}",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _escape(text: str) -> str:
    return "".join(SIGNS.get(sign, sign) for sign in " ".join(text.split()))
