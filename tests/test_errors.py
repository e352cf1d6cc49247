"""Every error of attnlab is an AttnlabError, the module's tree names it, and a misspelt name gets a hint."""

import inspect

import pytest

from attnlab import errors
from attnlab.errors import AttnlabError, AttnlabWarning, closest, remove_suggestion

CLASSES = [cls for _, cls in inspect.getmembers(errors, inspect.isclass) if cls.__module__ == errors.__name__]


@pytest.mark.parametrize("cls", CLASSES)
def test_the_tree_of_the_module_names_every_class(cls: type) -> None:
    assert issubclass(cls, AttnlabError if cls is not AttnlabWarning else UserWarning)
    assert cls.__name__ in (errors.__doc__ or "")


@pytest.mark.parametrize(
    ("word", "hint"),
    [("sofmax", ", did you mean 'softmax'?"), ("RELU", ", did you mean 'ReLU'?"), ("window", ""), ("", "")],
)
def test_the_closest_name_is_suggested(word: str, hint: str) -> None:
    assert closest(word, ["softmax", "ReLU", "minkowski"]) == hint
    assert closest(word, []) == ""


@pytest.mark.parametrize(
    ("word", "hint"), [("m", ", did you mean 'n'?"), ("N", ", did you mean 'n'?"), ("su", ", did you mean 'sum'?")]
)
def test_a_single_letter_is_taken_for_the_other_single_letter(word: str, hint: str) -> None:
    assert closest(word, ["none", "sum", "n"]) == hint


def test_of_several_letters_none_is_suggested() -> None:
    assert closest("x", ["q", "k", "v"]) == ""


def test_a_suggestion_can_be_removed_again() -> None:
    message = f"unknown stage 'sofmax'{closest('sofmax', ['softmax'])}\n    dot | sofmax"
    assert remove_suggestion(message) == "unknown stage 'sofmax'\n    dot | sofmax"
