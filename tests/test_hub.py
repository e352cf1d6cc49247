"""Names on the hub: a missing folder is refused without a connection, and a hub out of reach is asked once."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from huggingface_hub import constants
from transformers import AutoConfig

from attnlab.errors import PretrainedError
from attnlab.hub import check_folder_or_name, explain_assumption, find_connection_problem
from attnlab.pretrained import load_pretrained


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder of one run, and its parent the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "baseline").mkdir(parents=True)
    return tmp_path / "runs"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("./runs/missing", "; runs holds baseline"),
        ("./runs/baselin", ", did you mean 'baseline'?"),
        ("a/b/c", "; there is no folder a/b either"),
    ],
)
def test_a_missing_folder_is_named_with_what_its_parent_holds(
    runs: Path, name: str, hint: str, unreachable_hub: list[bytes]
) -> None:
    with pytest.raises(PretrainedError) as raised:
        check_folder_or_name(name)
    assert str(raised.value).startswith(f"there is no folder '{name}'{hint}")
    assert not unreachable_hub


@pytest.mark.parametrize("name", ["runs", "runs/baseline", "gpt2", "nowhere/x", "runs/missing"])
def test_folders_and_possible_names_pass(runs: Path, name: str, unreachable_hub: list[bytes]) -> None:
    check_folder_or_name(name)
    assert not unreachable_hub


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("runs/baseline", ""),
        ("nowhere/x", "there is no folder 'nowhere/x'; it was taken for a name on the hub"),
        (
            "runs/missing",
            "there is no folder 'runs/missing'; runs holds baseline; it was taken for a name on the hub; "
            "./runs/missing would be a folder",
        ),
        (
            "runs/baselin",
            "there is no folder 'runs/baselin', did you mean 'baseline'? It was taken for a name on the hub; "
            "./runs/baselin would be a folder",
        ),
    ],
)
def test_a_name_beside_a_folder_of_its_owner_is_one_on_the_hub(runs: Path, name: str, words: str) -> None:
    assert explain_assumption(name) == words


def test_the_error_for_a_name_that_the_hub_has_not_says_what_was_assumed(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(
        PretrainedError, match=r"^there is no folder 'runs/missing'; .* taken for a name on the hub; .*"
    ):
        load_pretrained(AutoConfig, "runs/missing")


@pytest.mark.parametrize("is_dataset", [False, True])
def test_a_hub_out_of_reach_is_asked_once(is_dataset: bool, unreachable_hub: list[bytes]) -> None:
    assert find_connection_problem("nowhere/x", is_dataset=is_dataset).startswith("127.0.0.1: ")
    assert len(unreachable_hub) == 1


def test_offline_nothing_is_asked(unreachable_hub: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert find_connection_problem("nowhere/x") == ""
    assert not unreachable_hub


def test_a_name_that_cannot_be_is_left_to_the_client(unreachable_hub: list[bytes]) -> None:
    assert find_connection_problem("a--b/x..y") == ""
    assert not unreachable_hub


@pytest.mark.parametrize(("status", "problem"), [(404, ""), (401, ""), (503, "it answers with status 503")])
def test_every_answer_but_a_failure_of_the_server_will_do(
    status: int, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = SimpleNamespace(head=lambda *_, **__: SimpleNamespace(status_code=status))
    monkeypatch.setattr("huggingface_hub.get_session", lambda: session)
    assert find_connection_problem("nowhere/x") == problem
