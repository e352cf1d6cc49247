"""Which arm is ahead while a study runs: by losses, then by figures, and never an arm that leaks."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from attnlab.studies.answers.leaderboard import LOSS
from attnlab.studies.answers.progress import Progress, Snapshot

from ..moments import Moment, update, write


@pytest.fixture
def moment(tmp_path: Path) -> Iterator[Moment]:
    found = Moment(tmp_path)
    found.hold()
    yield found
    found.ledger.close()


@pytest.fixture
def planned(moment: Moment) -> Moment:
    moment.plan()
    return moment


def leaderboard(seen: Snapshot) -> list[tuple[str, float, int]]:
    """Return the places of the only phase and size."""
    (found,) = seen.leaderboards
    return [(place.arm, round(place.mean, 6), place.num_seeds) for place in found.places]


def test_arms_stand_by_losses_until_one_has_ended(planned: Moment) -> None:
    for arm, loss in (("dot", 3.0), ("bypass", 2.0)):
        write(planned.begin(arm, 1), update(10, loss, 1.0))
    seen = Progress(planned.folder).look()
    assert seen.leaderboards[0].figure == LOSS
    assert leaderboard(seen) == [("bypass", 2.0, 1), ("dot", 3.0, 1)]
    assert seen.leaderboards[0].leader == "bypass"
    for seed, accuracy in ((1, 0.5), (2, 0.7)):
        planned.end("dot", seed, accuracy)
    planned.end("bypass", 2, 0.4)
    seen = Progress(planned.folder).look()
    assert leaderboard(seen) == [("dot", 0.6, 2), ("bypass", 0.4, 1)]
    assert seen.leaderboards[0].sentence == (
        "recall, tiny: dot leads; mean accuracy: dot 0.6 (2 seeds), bypass 0.4 (1 seed)"
    )  # fmt: skip


def test_nobody_leads_alone_or_level(planned: Moment) -> None:
    planned.end("dot", 1, 0.5)
    assert Progress(planned.folder).look().leaderboards[0].leader is None
    planned.end("bypass", 1, 0.5)
    assert Progress(planned.folder).look().leaderboards[0].leader is None


def test_an_arm_that_sees_the_future_does_not_lead(tmp_path: Path) -> None:
    moment = Moment(tmp_path, obstacles={"bypass": "its audit finds a leak"})
    moment.hold()
    moment.plan()
    for arm, accuracy in (("dot", 0.5), ("bypass", 0.99), ("slow", 0.4)):
        moment.end(arm, 1, accuracy)
    (found,) = Progress(tmp_path).look().leaderboards
    moment.ledger.close()
    assert (found.leader, found.apart) == ("dot", ("bypass",))
    assert found.sentence.endswith("not compared, since they see the future: bypass")
