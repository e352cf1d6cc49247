"""The fuzzer reaches every setting of study files and runs, with values that the schema allows and others."""

from __future__ import annotations

import tomllib
from random import Random

import pytest

from attnlab.studies.file.design import Design
from attnlab.training.spec import RunSpec

from .kinds import RUN_SETTINGS, STUDY_SETTINGS, TOO_LONG, TRAINED_STUDY_SETTINGS
from .settings import Settings, write_toml, write_value


@pytest.mark.parametrize(("kind", "settings"), [(Design, STUDY_SETTINGS), (RunSpec, RUN_SETTINGS)])
def test_every_setting_has_a_place(kind: type[Design] | type[RunSpec], settings: Settings) -> None:
    schema = kind.model_json_schema()
    names = {name for section in [schema, *schema["$defs"].values()] for name in section.get("properties", {})}
    assert names - {path[-1] for path in settings.places} <= {*TOO_LONG}


def test_some_changes_are_valid_and_others_are_not() -> None:
    outcomes = set()
    for number in range(40):
        text = write_toml(STUDY_SETTINGS.change_example(Random(number)))
        try:
            Design.model_validate(tomllib.loads(text.decode()))
        except ValueError:
            outcomes.add("refused")
        else:
            outcomes.add("valid")
    assert outcomes == {"refused", "valid"}


def test_what_trains_has_small_numbers_only() -> None:
    text = str([TRAINED_STUDY_SETTINGS.change_example(Random(number), limit=8)["phases"] for number in range(60)])
    assert "is_compiled" not in text


def test_values_are_written_as_toml_reads_them() -> None:
    value = {"a": [1, 0.5, 'x"\n', True], "b.c": {"d": -1e300}}
    assert tomllib.loads(write_toml({"value": value, "none": None}).decode()) == {"value": value}
    assert tomllib.loads(f"value = {write_value(value)}")["value"] == value
    assert write_value(None) == "none"
    assert write_value(float("inf")) == "inf"
