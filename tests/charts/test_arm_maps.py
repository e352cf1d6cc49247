"""Maps of several models side by side: small files, labels for every token, and images that let the ground through."""

import json

import numpy as np
import pytest

from attnlab.charts import svg
from attnlab.charts.arm_maps import ArmMaps, draw_head, draw_heads
from attnlab.charts.raster import Weights
from attnlab.charts.theme import PAGE

TOKENS = [f"token{number}" for number in range(24)]
WEIGHTS = np.random.default_rng(0).dirichlet(np.full(24, 0.3), (2, 4, 24))
MAPS = [ArmMaps("dot", WEIGHTS, (0, 1), TOKENS, TOKENS), ArmMaps("other", WEIGHTS - 0.1, (0, 1), TOKENS, TOKENS)]


def test_a_head_of_every_model_has_its_tokens_and_is_small() -> None:
    spec = draw_head(MAPS, (1, 2), "Layer 1, head 2", "text, mini", PAGE)
    assert len(json.dumps(spec)) < 40_000
    picture = svg(spec)
    for words in (
        "dot",
        "other",
        "token0",
        "token23",
        "Layer 1, head 2",
        "full colour: a weight of 1",
        "blue: negative",
    ):
        assert words in picture
    assert picture.count("data:image/png") == 2
    assert "var(--ground)" in picture


def test_all_heads_are_one_image_of_a_model_with_the_numbers_of_its_layers() -> None:
    maps = [ArmMaps("large", WEIGHTS, (0, 11), TOKENS, TOKENS)]
    picture = svg(draw_heads(maps, "Every head", "text, mini"))
    assert picture.count("data:image/png") == 1
    assert ">11<" in picture


@pytest.mark.parametrize(
    ("weights", "most"), [(WEIGHTS, 1.0), (WEIGHTS * 0.5, 0.5 * WEIGHTS.max()), (np.zeros((1, 1, 2, 2)), 1.0)]
)
def test_full_colour_is_1_if_rows_are_shares(weights: Weights, most: float) -> None:
    assert ArmMaps("a", weights, (0,), TOKENS, TOKENS).most == pytest.approx(most)


def test_a_model_without_the_head_is_left_out() -> None:
    maps = [*MAPS, ArmMaps("mixed", WEIGHTS[:1], (1,), TOKENS, TOKENS)]
    assert [len(draw_head(maps, (layer, 0), "one", "two")["concat"]) for layer in (0, 1)] == [2, 3]


def test_learned_keys_make_a_map_wider_than_high() -> None:
    wide = np.ones((1, 1, 2, 5)) / 5
    spec = draw_head([ArmMaps("prefix", wide, (0,), TOKENS[:2], TOKENS[:5])], (0, 0), "one", "two")
    panel = spec["concat"][0]
    assert panel["width"] == 2.5 * panel["height"]
