"""Questions are read with their places; what no model can answer for is refused."""

from pathlib import Path

import pytest

from attnlab.errors import TaskError
from attnlab.tasks import load
from attnlab.tasks.squad.question import SquadQuestion, read_questions

from .questions import CONTEXT, question, write_squad


def test_a_file_becomes_questions_with_their_places(tmp_path: Path) -> None:
    path = write_squad(tmp_path / "dev.json", [question("Denver Broncos"), question("24–10", key="q2")])
    first, second = read_questions(path)
    assert first.answers == ("Denver Broncos",)
    assert first.span(0) == (4, 18)
    assert second.place == f"{path}, row 2"


def test_the_embedded_questions_are_of_the_same_form() -> None:
    questions = load("squad_v2").examples("embedded:squad", "dev")
    assert len({one.id for one in questions}) == len(questions)
    assert all(one.context[begin:end] for one in questions if one.answers for begin, end in [one.span(0)])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (SquadQuestion("q", "Who?", " \n", (), (), ""), "row 1: question 'q' has an empty context"),
        (SquadQuestion("q", " ", "Some text", (), (), ""), "row 1: question 'q' has an empty question"),
        (SquadQuestion("q", "Who?", "Some text", (" ",), (4,), ""), "row 1: question 'q' has an empty gold answer"),
    ],
)
def test_empty_texts_are_refused(tmp_path: Path, wrong: SquadQuestion, message: str) -> None:
    with pytest.raises(TaskError, match=message):
        read_questions(write_squad(tmp_path / "dev.json", [wrong]))


def test_two_questions_of_one_id_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=r"row 2: the id 'q1' stands at .*row 1 already"):
        read_questions(write_squad(tmp_path / "dev.json", [question("Denver"), question("Carolina")]))


def test_v1_refuses_questions_without_an_answer(tmp_path: Path) -> None:
    path = write_squad(tmp_path / "dev.json", [question(None)])
    with pytest.raises(TaskError, match=r"row 1: question 'q1' has no answer.*squad_v2"):
        load("squad").examples(path)
    assert load("squad_v2").examples(path)[0].answers == ()


def test_an_answer_that_is_not_where_it_should_be_is_refused() -> None:
    moved = SquadQuestion("q1", "Who?", CONTEXT, ("Denver",), (5,), "dev.json, row 7")
    with pytest.raises(TaskError, match=r"dev.json, row 7: the answer 'Denver' .* character 5 .* there is 'enver '"):
        moved.span(0)


def test_spaces_around_an_answer_are_not_part_of_it() -> None:
    assert question(" Denver Broncos ").span(0) == (4, 18)
