"""The results as a LaTeX table that stands alone: metric and direction, what the arms are, floors, and every note."""

from collections.abc import Sequence

from attnlab.tasks.scores import LOWER_IS_BETTER

from .cells import COLUMNS, choose_columns, get_fair_comparison, has_leak
from .headline import Headline
from .results import ArmRow, PhaseResults

SHOWN_COLUMNS = ("arm", "phase", "size", "mean", "SD", "difference", "interval", "verdict")
METRIC = "metric"
"""A column where the phases have different ones."""
SIGNS = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': "''", "−": "$-$", "–": "--", "±": r"$\pm$", "∞": r"$\infty$",
    "α": r"$\alpha$", "ρ": r"$\rho$", "…": r"\ldots{}", "≥": r"$\geq$", "≤": r"$\leq$", "×": r"$\times$",
    "†": r"$\dagger$", "→": r"$\to$", "·": r"$\cdot$", "√": r"$\surd$", "“": "``", "”": "''", "’": "'",
}  # fmt: skip
LAST_KNOWN = 0x17F
"""The last character of Latin Extended-A, which pdflatex knows."""
LEAKING = "†"
"""The mark of a mean that was measured with access to future tokens."""


def write_latex(headline: Headline, places: Sequence[PhaseResults]) -> str:
    """Write the results as LaTeX, with the question as caption; the table needs the package booktabs."""
    arms = [row for place in places for row in place.rows]
    columns = [name for name in choose_columns(arms) if name in SHOWN_COLUMNS]
    letters = ["r" if arms and COLUMNS[name](arms[0]).is_number else "l" for name in columns[:-1]]
    if len({place.figure for place in places}) > 1:
        at = columns.index("phase") + 1 if "phase" in columns else 1
        columns.insert(at, METRIC)
        letters.insert(at, "l")
    # A paragraph for the verdict, so that the table fits the width of a page.
    width = 0.15 if METRIC in columns else 0.22
    size = r"\scriptsize" if "phase" in columns else r"\footnotesize"
    caption = " ".join([headline.question, headline.state, *_describe_figures(places), *_describe_intervals(arms)])
    lines = [
        r"% needs \usepackage{booktabs}", r"\begin{table}", r"\centering", rf"\caption{{{_escape(caption)}}}",
        # Classes for articles leave no space between a caption and what is below it.
        r"\vspace{1ex}", rf"{size}\setlength{{\tabcolsep}}{{3pt}}",
        rf"\begin{{tabular}}{{@{{}}{''.join(letters)}p{{{width}\linewidth}}@{{}}}}", r"\toprule",
        rf"{' & '.join(columns)} \\",
        *(line for place in places for line in (r"\midrule", *_write_rows(place, columns))),
        r"\bottomrule", r"\end{tabular}", *_write_notes(headline, arms), r"\end{table}",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _describe_figures(places: Sequence[PhaseResults]) -> list[str]:
    """Say which metric each phase has, and which of its directions is better."""
    figures: dict[str, list[str]] = {}
    for place in places:
        if place.figure:
            figures.setdefault(place.figure, []).append(place.phase)
    written = []
    for figure, phases in figures.items():
        where = f" in {', '.join(dict.fromkeys(phases))}" if len(figures) > 1 else ""
        direction = "lower" if figure in LOWER_IS_BETTER else "higher"
        written.append(f"{figure}{where} ({direction} is better)")
    return [f"Means and SDs over seeds of {'; '.join(written)}."] if written else []


def _describe_intervals(rows: Sequence[ArmRow]) -> list[str]:
    comparisons = [one for one in map(get_fair_comparison, rows) if one is not None]
    baseline = next((row.arm for row in rows if row.is_baseline), "")
    if not comparisons:
        return []
    levels = list(dict.fromkeys(f"{100 * (1 - level):.4g} %" for level in sorted({one.level for one in comparisons})))
    shown = levels[0] if len(levels) == 1 else f"{levels[-1]} to {levels[0]}"
    shared = " (all comparisons share one false-positive rate)" if len(levels) > 1 else ""
    relative = any(one.question.scale == "log" for one in comparisons)
    unit = ", in percent of it where a % is given," if relative else ""
    smallest = ", ".join(dict.fromkeys(one.question.shown_smallest for one in comparisons))
    return [
        f"Differences are to {baseline}{unit} with intervals at {shown}{shared}; the smallest difference of interest "
        f"is {smallest}."
    ]


def _write_rows(place: PhaseResults, columns: Sequence[str]) -> list[str]:
    lines = []
    for row in place.rows:
        texts = {name: place.figure if name == METRIC else COLUMNS[name](row).text for name in columns}
        texts["mean"] += LEAKING if has_leak(row) else ""
        *cells, verdict = map(_escape, texts.values())
        lines.append(rf"{' & '.join(cells)} & \raggedright {verdict} \tabularnewline")
    return lines


def _write_notes(headline: Headline, rows: Sequence[ArmRow]) -> list[str]:
    """Write below the table what it cannot be read without: the lines of the arms, and the notes of all verdicts."""
    paragraphs = [rf"{_escape(arm)}: \texttt{{{_escape(line)}}}" for arm, line in headline.arms]
    arms = [f"{'; '.join(paragraphs)}."] if paragraphs else []
    leaking = [f"{LEAKING} measured with access to future tokens"] if any(map(has_leak, rows)) else []
    notes = [f"{_escape(note.removesuffix('.'))}." for note in (*leaking, *headline.list_notes())]
    if not arms and not notes:
        return []
    return [
        r"\par\vspace{1ex}", r"\begin{minipage}{\linewidth}\scriptsize\raggedright",
        "\n".join([*arms, *notes]), r"\end{minipage}",
    ]  # fmt: skip


def _escape(text: str) -> str:
    return "".join(SIGNS.get(sign) or _spell_out(sign) for sign in " ".join(text.split()))


def _spell_out(sign: str) -> str:
    """Write a character that pdflatex cannot set by its number."""
    return sign if sign.isprintable() and ord(sign) <= LAST_KNOWN else f"[U+{ord(sign):04X}]"
