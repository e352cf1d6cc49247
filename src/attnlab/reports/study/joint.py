"""Answers over sizes, horizons and tasks in a report: sentences, charts of trends, and a table."""

import re
from collections.abc import Sequence
from functools import partial

from attnlab.charts import Spec, trend
from attnlab.charts.theme import Theme
from attnlab.charts.trend import ArmTrend, TrendPoint
from attnlab.statistics.formatting import percent
from attnlab.studies.answers.joint_answer import JointAnswer
from attnlab.studies.answers.study_folder import Record
from attnlab.studies.file.horizons import find_phase
from attnlab.tasks.scores import LOWER_IS_BETTER

from .figures import TREND, Figure

ACROSS = {"trend": "parameters", "horizons": "steps of training"}
TITLES = {"trend": "Difference to {} by size", "horizons": "Difference to {} by length of training"}
COLUMNS = (
    "kind", "phase", "size", "arm", "figure", "value", "low", "high", "level", "p", "smallest", "method", "verdict",
)  # fmt: skip


def list_trend_figures(record: Record) -> list[Figure]:
    """List a chart for each phase with a trend over sizes, and each phase and size with one over horizons."""
    groups: dict[tuple[str, str, str], list[JointAnswer]] = {}
    for answer in record.joint_answers:
        if answer.kind in ACROSS and answer.points:
            groups.setdefault((answer.kind, answer.phase, answer.size), []).append(answer)
    return [_make_figure(record, answers) for answers in groups.values()]


def _make_figure(record: Record, answers: Sequence[JointAnswer]) -> Figure:
    first = answers[0]
    smallest = find_phase(record.design, first.phase).smallest or 0.0
    trends = [
        ArmTrend(
            answer.arm, [TrendPoint(point.place or 0.0, point.difference, point.interval) for point in answer.points],
            answer.line or (0.0, 0.0),
        )
        for answer in answers
    ]  # fmt: skip
    levels = sorted({1 - answer.level for answer in answers if answer.level is not None})
    shown = " to ".join(dict.fromkeys(map(percent, (levels[0], levels[-1]))))
    better = "less" if first.figure in LOWER_IS_BETTER else "more"
    unit = ", in percent" if first.unit else ""
    up = f"difference in {first.figure.replace('_', ' ')}{unit} ({better} is better)"
    title = TITLES[first.kind].format(record.design.baseline)
    caption = (
        f"Squares are differences to {record.design.baseline}, lines their intervals ({shown}); the dashed line is the "
        f"fitted slope. {' '.join(f'{answer.arm}: {answer.numbers}, {answer.verdict}.' for answer in answers)} Grey is "
        f"smaller than {smallest:g}{first.unit}, the smallest difference of interest."
    )
    below = f"{first.phase}, {first.size}"
    name = re.sub(r"[^A-Za-z0-9_.+-]+", "-", f"{TREND}-{first.kind}-{below}").strip("-")
    titles = (title, below, f"{ACROSS[first.kind]} (axis of base 2)", up)
    return Figure(TREND, name, f"{title}: {below}", caption, partial(_draw, trends, smallest, titles))


def _draw(trends: Sequence[ArmTrend], smallest: float, titles: tuple[str, str, str, str], theme: Theme) -> Spec:
    return trend.draw(trends, smallest, titles, theme)


def list_joint_rows(answers: Sequence[JointAnswer]) -> list[list[object]]:
    """Return a row for every answer, under COLUMNS; unknown values are None."""
    return [
        [answer.kind, answer.phase, answer.size, answer.arm, answer.figure, answer.value,
         *(answer.interval or (None, None)), answer.level, answer.p, answer.smallest, answer.method, answer.verdict]
        for answer in answers
    ]  # fmt: skip
