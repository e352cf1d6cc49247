"""`attnlab score`: the official metrics of predictions in a file."""

from typing import TYPE_CHECKING, Annotated

import typer

from attnlab.cli.options import AsJson
from attnlab.cli.tables import print_json, print_table
from attnlab.errors import RequestError

if TYPE_CHECKING:
    from attnlab.tasks import Scores


def score(
    what: Annotated[str, typer.Argument(metavar="TASK", help="squad, squad_v2, boolq, or glue and one of its tasks.")],
    task: Annotated[str | None, typer.Argument(metavar="GLUE_TASK", help="The GLUE task: cola, mrpc, stsb …")] = None,
    data: Annotated[str, typer.Option(metavar="FILE", help="Questions and gold answers, or rows with labels.")] = "",
    predictions: Annotated[str, typer.Option(metavar="FILE", help="{id: …} in .json, or rows with an id.")] = "",
    na_probs: Annotated[
        str | None, typer.Option(metavar="FILE", help="SQuAD v2.0: each question's score of having no answer.")
    ] = None,
    na_threshold: Annotated[float, typer.Option(help="SQuAD v2.0: the score above which there is no answer.")] = 1.0,
    strict: Annotated[bool, typer.Option("--strict", help="Refuse missing ids that SQuAD v1.1 counts wrong.")] = False,
    as_json: AsJson = False,
) -> int:
    """Score predictions as the official script of their task does."""
    from attnlab.tasks import Classification, load
    from attnlab.tasks.scoring import Rules, score_labels, score_squad

    name = _read_task_name(what, task)
    loaded = load(name)
    for option, value in (("--data", data), ("--predictions", predictions)):
        if not value:
            raise RequestError(
                f"{option} FILE is missing; for example: attnlab score squad --data dev.json --predictions pred.json"
            )
    if name in ("squad", "squad_v2"):
        scores = score_squad(data, predictions, Rules(name == "squad_v2", na_probs, na_threshold, strict))
    else:
        if not isinstance(loaded, Classification):
            raise RequestError(f"cannot score files of '{name}'; squad, squad_v2, boolq and GLUE's tasks can be scored")
        scores = score_labels(loaded, data, predictions)
    if as_json:
        print_json(scores.record())
    else:
        _print_scores(scores)
    return 0


def _read_task_name(what: str, task: str | None) -> str:
    from attnlab.tasks.classification import GLUE

    if what.lower() != "glue":
        if task is not None:
            raise RequestError(f"'{what}' takes no second name; omit '{task}', which only 'glue' takes")
        return what.lower()
    if task is None:
        raise RequestError(f"attnlab score glue needs a task, one of {', '.join(entry.name for entry in GLUE)}")
    return task


def _print_scores(scores: "Scores") -> None:
    # Counts are whole numbers; six decimals distinguish two systems.
    rows = [(name, f"{value:.{0 if name.endswith('total') else 6}f}") for name, value in scores.figures.items()]
    print_table((scores.task, ""), rows)
    if scores.collapse is not None:
        print(f"\n{scores.collapse.sentence}")
    if scores.missing:
        print(f"\n{len(scores.missing)} of {len(scores.ids)} have no prediction and count as wrong")
