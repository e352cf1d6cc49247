"""A job counts its updates and operations, and records what decides its result."""

from attnlab.training import Segment, build

from ..runs import small


def test_updates_are_counted_by_segment() -> None:
    segments = (Segment(name="a", steps=2, batch=4), Segment(name="b", epochs=2, batch=10))
    job = build(small(segments=segments))
    assert job.steps_of_segments == [2, 6]  # thirty rows in batches of ten, twice
    assert job.num_steps == 8
    assert job.operations > 0


def test_the_record_has_the_seed_and_no_display_settings() -> None:
    record = build(small()).record
    assert record["seed"] == 3
    assert "log_every" not in record
