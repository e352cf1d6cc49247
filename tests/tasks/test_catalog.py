"""Every task of the catalog keeps the protocol: from examples to a score, with a model of its own head."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnlab.data import PROBES
from attnlab.errors import TaskError
from attnlab.tasks import LOG_FIGURES, TASKS, LabelledText, load
from attnlab.tasks.classification import Classification
from attnlab.tasks.language.line import make_lines

from .models import batches, build
from .tokenizers import SENTENCES, byte_level, wordpiece

GLUE = {"cola", "sst2", "mrpc", "qqp", "stsb", "mnli", "mnli_mismatched", "qnli", "rte", "wnli"}


def examples_of(name: str, task: Any) -> list[Any]:
    if name in ("mlm", "clm"):
        return list(make_lines(SENTENCES))
    if name in ("squad", "squad_v2"):
        questions = task.examples("embedded:squad?unanswerable=0" if name == "squad" else "embedded:squad", "dev")
        return list(questions[:6])
    if isinstance(task, Classification):
        pairs = [SENTENCES[1] if task.columns.pair else None, None]
        return [LabelledText(str(i), SENTENCES[i], pairs[0], i % 2, f"row {i}") for i in range(4)]
    return list(task.examples()[:4])


def test_the_catalog_has_what_is_promised() -> None:
    assert set(TASKS) == {"mlm", "clm", "squad", "squad_v2", "boolq", "text", *GLUE, *PROBES}
    assert all(task.name == name for name, task in TASKS.items())


@pytest.mark.parametrize("name", TASKS)
def test_a_task_goes_from_examples_to_a_score(name: str) -> None:
    task = load(name)
    is_forward = task.head == "AutoModelForCausalLM"
    tokenizer = byte_level() if is_forward else wordpiece()
    model = build("gpt2" if is_forward else "bert", task, None if name in PROBES else tokenizer)
    examples = examples_of(name, task)
    parts = batches(task, task.features(examples, tokenizer))
    loss = task.loss(model.train(), parts[0])
    loss.backward()
    assert loss.isfinite()
    scores = task.score(task.predict(model, parts), examples)
    assert scores.task == name
    assert scores.primary == task.primary
    assert scores.higher_is_better == task.higher_is_better
    assert np.isfinite(scores.value)
    assert list(scores.ids) == [one.id for one in examples]
    assert scores.per_example
    assert all(values.shape == (len(examples),) for values in scores.per_example.values())
    for figure, values in scores.per_example.items():
        if figure in scores.figures:
            assert values.mean() == pytest.approx(scores.figures[figure])
    logarithm = LOG_FIGURES.get(scores.primary)
    if logarithm:
        assert scores.of_examples(logarithm).mean() == pytest.approx(np.log(scores.value))
    assert scores.clusters is None or len(scores.clusters) == len(examples)
    assert scores.ceiling == task.ceiling


def test_settings_make_another_task() -> None:
    assert load("squad", max_len=256).max_len == 256
    assert load("squad").max_len == 384
    assert load("SST-2").name == "sst2"
    assert load("sts-b").primary == "pearson"


def test_wrong_names_are_answered_with_the_closest() -> None:
    with pytest.raises(TaskError, match=r"no task 'squadd', did you mean 'squad'\?.*There are: mlm"):
        load("squadd")
    with pytest.raises(TaskError, match=r"no task 'zzzz'\. There are"):
        load("zzzz")
    with pytest.raises(TaskError, match=r"'squad' has no setting 'maxlen', did you mean 'max_len'\?"):
        load("squad", maxlen=3)


@pytest.mark.parametrize(
    ("name", "settings", "said"),
    [
        ("clm", {"max_len": "long"}, "max_len of the task 'clm' is a int, such as 512, not 'long'"),
        ("clm", {"has_leak_free_perplexity": 1}, "has_leak_free_perplexity of the task 'clm' is a bool"),
        ("mlm", {"masking": 0.3}, "masking of the task 'mlm' is a Masking, not 0.3; it can be set from Python alone"),
    ],
    ids=["text", "number", "object"],
)
def test_settings_of_the_wrong_kind_are_refused(name: str, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(TaskError, match=said):
        load(name, **settings)


def test_any_file_with_a_label_column_is_a_task(tmp_path: Path) -> None:
    path = tmp_path / "reviews.csv"
    path.write_text('text,label\n"good, very",pos\nbad,neg\n', encoding="utf-8")
    task = load("text").with_labels_of(path)
    assert task.head_settings["num_labels"] == 2
    assert [one.label for one in task.examples(path)] == [1, 0]


def test_scores_answer_for_single_examples() -> None:
    texts = [LabelledText("a", "x", None, 1, "row 1")]
    scores = load("sst2").score({"a": 1}, texts)
    with pytest.raises(TaskError, match=r"'acuracy' is no score of single examples of 'sst2', did you mean 'accuracy'"):
        scores.of_examples("acuracy")
