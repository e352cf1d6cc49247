"""`attnlab data`: statistics of a corpus, and problems that would invalidate a comparison."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from attnlab.cli.options import AsJson, FigureFile
from attnlab.cli.tables import print_below, print_json, print_table, show_progress

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    from attnlab.data import DataAudit, Source

Unit = Literal["line", "paragraph", "file"]
SPLIT = "split:"


def data(
    name: Annotated[
        str, typer.Argument(metavar="SOURCE", help="A file, a folder, hf:NAME, hf:NAME/CONFIG, or embedded:NAME.")
    ],
    split: Annotated[str | None, typer.Option(help="The split: of a dataset, or of the files of a folder.")] = None,
    column: Annotated[str | None, typer.Option(help="The column with the text.")] = None,
    unit: Annotated[Unit, typer.Option(help="A document of a text file; a paragraph ends at a blank line.")] = "line",
    against: Annotated[
        str | None, typer.Option(metavar="OTHER", help="Count overlap with it, such as a test set; or split:NAME.")
    ] = None,
    tokenizer: Annotated[
        str | None, typer.Option(metavar="T", help="Name, folder or vocab.txt; or wordpiece, bpe, word: trained on it.")
    ] = None,
    clean: Annotated[str, typer.Option(metavar="STEPS", help="Clean first: unicode,whitespace,duplicates …")] = "",
    strict: Annotated[bool, typer.Option("--strict", help="Status 1 if anything is flagged.")] = False,
    as_json: AsJson = False,
    figure: FigureFile = None,
) -> int:
    """Examine a corpus: documents, lengths, duplicates, encoding, unknown tokens, punctuation, overlap."""
    from attnlab import charts
    from attnlab.data import Cleaning, audit_data, open_source

    if figure is not None:
        charts.check(figure)
    source = open_source(name, split=split, column=column, unit=unit)
    other = None if against is None else _find_other(against, source, unit)
    audit = audit_data(
        source,
        _find_tokenizer(tokenizer, source),
        other,
        Cleaning.parse(clean),
        lambda num: show_progress(f"{num:,} documents"),
    )
    show_progress("")
    if as_json:
        print_json(audit.record())
    else:
        _print_audit(audit)
    if figure is not None:
        charts.save(_draw_lengths(audit), figure)
    return 1 if strict and audit.flags else 0


def _find_other(name: str, source: "Source", unit: Unit) -> "Source":
    from attnlab.data import open_source

    if not name.startswith(SPLIT):
        return open_source(name, column=source.column, unit=unit)
    split = name.removeprefix(SPLIT)
    return replace(open_source(source.name, split=split, column=source.column, unit=unit), name=f"its {split} split")


def _find_tokenizer(name: str | None, source: "Source") -> "PreTrainedTokenizerFast | None":
    from attnlab.data import load_tokenizer, train_tokenizer
    from attnlab.data.tokenizers.training import TOKENIZER_KINDS

    for kind in TOKENIZER_KINDS:
        if name == kind:
            return train_tokenizer(source, kind)
    return None if name is None else load_tokenizer(name)


def _print_audit(audit: "DataAudit") -> None:
    print(f"{audit.name}: {audit.kind}, sha256 {audit.hash[:16]}…")
    print_table(("", "figure", ""), list(_list_figures(audit)))
    for step in audit.removed:
        print(f"{step['step']} removed {step['documents']:,} documents and {step['characters']:,} characters")
    for flag in audit.flags:
        print("\nLOOK AT THIS")
        print_below(flag)
    if not audit.flags:
        print("\nNothing is flagged.")


def _list_figures(audit: "DataAudit") -> Iterator[tuple[str, str, str]]:
    yield "documents", f"{audit.num_documents:,}", f"{audit.num_empty:,} of them empty"
    yield "words", f"{audit.num_words:,}", f"{audit.num_characters:,} characters"
    if audit.num_tokens is not None:
        yield "tokens", f"{audit.num_tokens:,}", f"of a vocabulary of {audit.vocabulary_size:,}, without special tokens"
        share = audit.unknown_share
        shown = ("–", "the tokenizer has none") if share is None else (f"{share:.2%}", "of tokens")
        yield "unknown tokens", *shown
    spread = ", ".join(f"{name} {value:,}" for name, value in audit.quantiles.items())
    yield f"{audit.unit} per document", f"{audit.mean_length:,.1f}", spread
    yield "duplicates", f"{audit.num_duplicates:,}", "exact copies of earlier documents"
    broken = audit.encoding
    yield "broken encoding", f"{broken.replaced + broken.mojibake:,}", "documents with U+FFFD or misread UTF-8"
    bare = audit.punctuation
    yield "no punctuation", f"{bare.bare_share:.1%}", f"of {bare.num_long:,} lines long enough to need some"
    if audit.overlap is not None:
        yield "overlap, lines", f"{audit.overlap.line_share:.2%}", f"of {audit.overlap.num_lines:,} of {audit.against}"
        yield "overlap, 13 words", f"{audit.overlap.run_share:.2%}", f"of {audit.overlap.num_runs:,} runs"


def _draw_lengths(audit: "DataAudit") -> dict[str, object]:
    from attnlab.charts import histogram

    counts, edges = audit.histogram()
    marks = {name: value for name, value in audit.quantiles.items() if name not in ("shortest", "longest")}
    shown = {name: max(float(value), 1.0) for name, value in marks.items()}
    titles = (
        f"How long the documents of {audit.name.rsplit('/', 1)[-1]} are",
        f"{audit.num_documents:,} documents, {audit.mean_length:,.1f} {audit.unit} each on average",
        f"{audit.unit} in a document",
        "documents",
    )
    return dict(histogram.draw(edges.tolist(), counts.tolist(), titles, shown))
