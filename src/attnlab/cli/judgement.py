"""The judgement of a table as `attnlab judge` prints it: findings, comparisons, and how to read them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from attnlab.cli.tables import print_below, print_table

if TYPE_CHECKING:
    from attnlab.statistics import Comparison
    from attnlab.studies.integrity import IntegrityFinding, Judgement
    from attnlab.studies.integrity.analysis import ComparisonRow, TableAnalysis

COLUMNS = (
    "arm", "group", "metric", "step", "seeds", "baseline", "variant", "SD ratio", "difference", "verdict interval",
    "p", "adjusted p", "verdict",
)  # fmt: skip
UNKNOWN = "–"
OMITTED_NOTES = ("missing scores", "widening")
"""Kinds of notes that are omitted: the table shows missing scores itself, and one sentence what is widened."""


def print_finding(finding: "IntegrityFinding") -> None:
    """Print one finding."""
    print(f"\n{'FAULT' if finding.is_fault else 'note '}  {finding.check}")
    print_below(f"{finding.sentence}.")


def print_count(findings: Sequence["IntegrityFinding"]) -> None:
    """Print how many faults were found."""
    num = sum(finding.is_fault for finding in findings)
    print(f"\n{num} {'fault' if num == 1 else 'faults'} found." if num else "\nNo fault found.")


def print_judgement(judgement: "Judgement") -> None:
    """Print how the table was read, the findings, and what it shows."""
    table = judgement.table
    from attnlab.studies.integrity.finding import list_first
    from attnlab.studies.integrity.tables.mapping import quote_map

    metrics, arms = (list_first(names, 6) or "none" for names in (table.metrics, table.arms))
    num_empty = len(table.cells) - len(table.values)
    empty = f" and {num_empty} empty {'cell' if num_empty == 1 else 'cells'}" if num_empty else ""
    print(f"{table.name}: {len(table.values)} values{empty}; metrics {metrics}; arms {arms}")
    print_below(f"Read as: {'; '.join((*table.layout, *judgement.units))}; baseline '{table.baseline}'.")
    if table.mapping:
        print_below("To read it differently, give --baseline ARM, or change a part of")
        print(f"    {quote_map(table.mapping)}")  # in one line, so that it can be copied
    if table.unused:
        shown = list_first([repr(name) for name in table.unused])
        print_below(
            f"Columns of numbers that are not read as arms: {shown}. If one is an arm, add value=COLUMN+…, with all "
            "columns of scores, to this line."
        )
    elif any(word.startswith(("not used: '", "not used, as costs: '")) for word in table.layout):
        print_below(
            "To use a column that is not used, give it a part in this line: value=COLUMN+… as scores, with all columns "
            "of scores, or group=COLUMN, or arm=COLUMN."
        )
    print_results(judgement)
    if len(table.arms) < 2:
        print(
            "\nThere is only one arm, so nothing is compared. --map arm=COLUMN names the column of arms, and --map "
            "'columns={arm}' says that each column is an arm, or with value=A+B as well that each of these is."
        )
    print_count(judgement.findings)


def print_results(judgement: "Judgement", what: str = "the table") -> None:
    """Print the findings, the comparisons, and what they presume. what: the name of what was analysed."""
    from attnlab.studies.integrity.finding import list_first

    table = judgement.table
    for finding in judgement.findings:
        print_finding(finding)
    for analysis in judgement.analyses:
        _print_analysis(analysis, judgement, what)
    alone = list(_list_alone(judgement))
    if alone:
        shown = list_first(alone)
        print_below(f"Not compared, since '{table.baseline}' has no value of the same group and metric: {shown}.")
    if judgement.changes:
        print("\nWhat the impossible values would change")
        for change in judgement.changes:
            print_below(f"{change}.")
    if any(analysis.rows for analysis in judgement.analyses):
        print("\nWhat a verdict presumes and a table cannot show")
        for presumed in judgement.presumed:
            print_below(f"- {presumed}")
    if len(table.arms) > 1 and not any(analysis.rows for analysis in judgement.analyses):
        print()
        print(
            f"Nothing is compared: no other arm has values of the same group and metric as '{table.baseline}'. --map "
            "group=COLUMN or --baseline ARM changes that, and so does --map 'columns={arm}' if each column is an arm."
        )


def _list_alone(judgement: "Judgement") -> Iterator[str]:
    """Yield the arms, groups and metrics without a comparison, of a table that has some."""
    rows = [row for analysis in judgement.analyses for row in analysis.rows]
    compared = {(row.arm, row.group, row.metric) for row in rows}
    titles = {(cell.arm, cell.group, cell.metric): cell.title for cell in judgement.table.values if rows}
    for key, title in titles.items():
        if key not in compared and key[0] != judgement.table.baseline:
            yield title


def _print_analysis(analysis: "TableAnalysis", judgement: "Judgement", what: str) -> None:
    if not analysis.rows:
        return
    print(f"\nAnalysis of {analysis.title.replace('the table', what)}")
    verdicts = {row.verdict for row in analysis.rows if row.comparison is None}
    if len(verdicts) == 1 and len(analysis.rows) > 1 and not any(row.comparison for row in analysis.rows):
        print_below(f"All {len(analysis.rows)} comparisons with '{judgement.table.baseline}': {verdicts.pop()}.")
        return
    rows = [_write_row(row) for row in analysis.rows]
    # Columns without information, such as the group of a table without groups, are omitted.
    optional = ("group", "step")
    shown = [
        n for n, name in enumerate(COLUMNS) if name not in optional or len({row[n] for row in rows} - {UNKNOWN}) > 1
    ]
    print_table([COLUMNS[n] for n in shown], [[row[n] for n in shown] for row in rows])
    for line in _explain_rows(analysis.rows):
        print_below(line)
    if analysis is judgement.analyses[-1]:
        for line in _explain_table(analysis.rows, judgement.primary):
            print_below(line)


def _explain_rows(rows: Sequence["ComparisonRow"]) -> Iterator[str]:
    from attnlab.statistics.verdict import AT_CEILING, AT_LEAST, DEGENERATE, FINISHED, NEITHER_LEARNED, STILL_TRAINING

    notes: dict[str, list[str]] = {}
    for row in rows:
        if row.comparison is None or row.role != "primary":
            continue
        decision = row.comparison.decision
        is_odd = decision.outcome in (AT_CEILING, DEGENERATE, NEITHER_LEARNED, STILL_TRAINING)
        if is_odd or FINISHED in decision.words:
            yield f"{row.name}: {decision.reason}{'' if decision.reason.endswith('?') else '.'}"
        stability = row.comparison.data.stability
        notes.setdefault(f"{stability.words}: {stability.reason}", []).append(row.name)
        for kind, sentences in row.comparison.notes_by_kind.items():
            # A difference that is settled beyond the threshold needs no word on the power for the threshold.
            is_settled = kind == "power" and AT_LEAST.partition("{")[0] in decision.words
            for note in sentences if not is_odd and not is_settled and kind not in OMITTED_NOTES else ():
                notes.setdefault(note, []).append(row.name)
    num_primary = sum(row.comparison is not None and row.role == "primary" for row in rows)
    for note, names in notes.items():
        yield f"{'every comparison' if len(names) == num_primary > 1 else ', '.join(names)}: {note}."
    if any(STILL_TRAINING in row.verdict and "INCONCLUSIVE" in row.verdict for row in rows):
        yield "How many more seeds would settle a comparison is not estimated while its runs still train."


def _explain_table(rows: Sequence["ComparisonRow"], primary: Sequence[str]) -> Iterator[str]:
    from attnlab.statistics.next_step import explain_next_step
    from attnlab.studies.integrity.tables.metrics import PERPLEXITIES, recognise_metric

    questions = [(row, row.comparison.question) for row in rows if row.comparison is not None]
    if not questions:
        return
    num_primary = sum(row.role == "primary" for row in rows)
    yield " ".join(_explain_family(num_primary, len(rows) - num_primary, primary))
    yield from _explain_directions(dict.fromkeys((row.metric, asked.higher_is_better) for row, asked in questions))
    methods = "; ".join(dict.fromkeys(row.comparison.method for row in rows if row.comparison is not None))
    data = [row.comparison.data for row in rows if row.comparison is not None]
    how = (
        f"unpaired ({methods}), since a table does not show whether equal seeds mean equal initial weights and data "
        "order; --paired compares them as pairs if they do"
    )
    if any(one.paired for one in data):
        how = f"as pairs of the same seed ({methods}), because of --paired or because the runs record that they are"
    elif any(one.scores is None for one in data):
        how = f"unpaired ({methods} of means, SDs and numbers of seeds)"
    about = "Intervals are about other seeds on the same evaluation examples, not other examples."
    yield f"Seeds are compared {how}. {about}"
    yield from _explain_test(rows)
    if any(recognise_metric(row.metric) in PERPLEXITIES and asked.scale == "linear" for row, asked in questions):
        yield (
            "Perplexities given as means with SDs are compared as they are and not by their logarithms, which need the "
            "score of each seed."
        )
    smallest = dict.fromkeys(f"{row.metric} {asked.shown_smallest}" for row, asked in questions)
    yield f"Smallest difference of interest: {', '.join(smallest)}; --smallest changes it."
    floors = dict.fromkeys(f"{row.metric} {asked.floor:g}" for row, asked in questions if asked.floor is not None)
    if floors:
        yield f"Floor, the score of a trivial strategy: {', '.join(floors)}."
    if any("more seed" in row.verdict for row in rows):
        yield (
            "'About N more seeds' is the number per arm, in addition to those in the table, that has 80 % power to "
            "settle the comparison if the difference stays as it is. It is settled once the verdict interval excludes "
            "0 or excludes the smallest difference of interest; N is for the one that needs fewer seeds."
        )
    compared = {row.name: row.comparison for row in rows if row.comparison is not None and row.role == "primary"}
    for sentence in explain_next_step(compared):
        yield f"{sentence[0].upper()}{sentence[1:]}."


def _explain_test(rows: Sequence["ComparisonRow"]) -> Iterator[str]:
    """Say which test interval, p and verdict come from; of runs that failed, also why there is a second test."""
    from attnlab.statistics.widening import explain_widening

    compared = {row.name: row.comparison for row in rows if row.comparison is not None}
    if not any(comparison.p == comparison.p for comparison in compared.values()):
        return
    ranked = {name: comparison for name, comparison in compared.items() if _is_of_ranks(comparison)}
    but = ", except where p is marked '(ranks)'" if ranked else ""
    yield (
        f"Interval and p come from the test in brackets, and the verdict rests on it alone{but}. The adjusted p is the "
        "same p, raised for the number of comparisons."
    )
    for sentence in explain_widening(compared):
        yield f"Widened: {sentence}."
    if any(comparison.data.failures.is_uneven for name, comparison in compared.items() if name not in ranked):
        yield (
            "Where runs failed, the p-values with failed runs as the worst result (a rank test) and of equal failure "
            "rates (Fisher's test) decide nothing here: they show what is hidden by leaving out failed runs, which "
            "the test in brackets does."
        )
    for name, comparison in ranked.items():
        failures, low, high = comparison.data.failures, *comparison.interval
        is_decisive = failures.worst_p <= comparison.level and failures.worst_sign != (low > 0) - (high < 0)
        rests = "this rank test" if is_decisive else "the interval"
        yield (
            f"{name}: p is of a rank test that counts each failed run as the worst result, since {failures.text}. The "
            f"interval leaves failed runs out. The verdict rests on {rests}."
        )


def _is_of_ranks(comparison: "Comparison") -> bool:
    """Tell whether the p-value is that of the rank test with failed runs as the worst result."""
    return comparison.data.failures.is_uneven and comparison.p == comparison.data.failures.worst_p


def _explain_directions(directions: Iterable[tuple[str, bool]]) -> Iterator[str]:
    from attnlab.studies.integrity.tables.metrics import read_direction, recognise_metric

    for is_higher, word in ((True, "Higher"), (False, "Lower")):
        named = [metric for metric, higher in directions if higher == is_higher]
        guessed = [metric for metric in named if not recognise_metric(metric) and read_direction(metric) is None]
        if named:
            yield f"{word} is better: {', '.join(named)}."
        if guessed:
            yield (
                f"The direction of {', '.join(guessed)} is assumed, since no known metric has this name. An arrow "
                "behind the name in the table, as in 'FID ↓', gives it; if these are tasks, --metric NAME gives their "
                "metric."
            )


def _explain_family(num_primary: int, num_others: int, primary: Sequence[str]) -> Iterator[str]:
    if num_primary:
        yield "A verdict follows from its verdict interval."
    if num_primary > 1:
        yield (
            f"The {num_primary} comparisons of {', '.join(primary)} share one false-positive rate of 5 %: the level of "
            "each interval is adjusted for their number (Holm's method)."
        )
    if num_others:
        yield "Comparisons of other metrics are exploratory: no verdict, and adjusted p-values (Benjamini–Hochberg)."
    elif len(primary) > 1:
        yield (
            "Every metric is primary unless --primary names some, since a table does not show which one was declared "
            "before the runs."
        )


def _write_row(row: "ComparisonRow") -> tuple[str, ...]:
    from attnlab.statistics.formatting import percent, show, signed

    step = UNKNOWN if row.step is None else f"{row.step:g}"
    head = row.arm, row.group or UNKNOWN, row.metric, step
    if row.comparison is None:
        return (*head, *[UNKNOWN] * 8, row.verdict)
    comparison, data = row.comparison, row.comparison.data
    low, high = comparison.interval
    unit, level = comparison.question.unit, percent(round(1 - comparison.level, 4))
    return (
        *head, _write_seeds(comparison), _write_mean(data.baseline.mean, data.baseline.sd),
        _write_mean(data.variant.mean, data.variant.sd), show(comparison.spread.ratio),
        f"{signed(comparison.difference)}{unit}",
        f"[{signed(low)}, {signed(high)}]{unit} at {level}" if low == low else UNKNOWN,
        f"{show(comparison.p)}{' (ranks)' if _is_of_ranks(comparison) else ''}", show(row.adjusted_p),
        _write_verdict(row),
    )  # fmt: skip


def _write_verdict(row: "ComparisonRow") -> str:
    """Return the verdict, and beside it whether the arm varies more or less over seeds, if that is known."""
    from attnlab.statistics.stability import UNKNOWN as NOT_KNOWN

    is_known = row.comparison is not None and row.role == "primary" and row.comparison.stability != NOT_KNOWN
    return f"{row.verdict}; {row.comparison.stability}" if is_known and row.comparison is not None else row.verdict


def _write_seeds(comparison: "Comparison") -> str:
    arms = comparison.data.scores or ()
    if comparison.data.scores is None:
        numbers = [summary.n for summary in comparison.data.moments]
        return ", ".join(map(str, dict.fromkeys(numbers)))
    counts = [
        f"{arm.num_seeds} of {arm.num_runs}" if arm.num_runs > arm.num_seeds else str(arm.num_seeds) for arm in arms
    ]
    return counts[0] if len(set(counts)) == 1 else ", ".join(counts)


def _write_mean(mean: float, sd: float) -> str:
    return f"{mean:.4g}" if sd != sd else f"{mean:.4g} ± {sd:.3g}"
