"""Results from several places as `attnlab compare A B …` prints them: what they share, their differences, verdicts."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from attnlab.cli.judgement import print_results
from attnlab.cli.tables import print_below, print_json

if TYPE_CHECKING:
    from attnlab.studies.integrity import JudgeOptions, TableHints


def compare_results(
    results: Sequence[str], arms: Sequence[str], hints: "TableHints", options: "JudgeOptions", as_json: bool
) -> int:
    """Compare results from several places with the first, and print it. hints: what the user says of the results."""
    from attnlab.studies.answers.cross_comparison import compare_sources
    from attnlab.studies.answers.result_source import read_source

    sources = [read_source(text, number, hints) for number, text in enumerate(results, start=1)]
    found = compare_sources(sources, arms, options, hints.metric)
    status = 0 if found.judgement.is_clean else 1
    if as_json:
        print_json({
            "compared": found.compared, "same": found.same, "different": found.different,
            "not_recorded": found.unknown, "examples": found.examples, "is_paired": found.is_paired,
            **found.judgement.record(),
        })  # fmt: skip
        return status
    for text in found.compared:
        print(text)
    for source in sources:
        if source.layout:
            print_below(f"{source.name} was read as: {'; '.join(source.layout)}.")
    if found.others and not arms:
        print_below(f"Not compared: {', '.join(found.others[:8])}; --arm A --arm B compares an arm of each.")
    print("\nAre they comparable?")
    print_below(f"The same: {', '.join(found.same) or 'nothing that is recorded'}.")
    for text in found.different:
        print_below(f"- {text}")
    for text in found.unknown:
        print_below(f"- {text}")
    if found.different:
        print_below("A verdict is about the results as they were made: any of these differences may be its cause.")
    print_results(found.judgement, "these results")
    for text in found.examples:
        print()
        print(f"Predictions: {text}.")
    return status
