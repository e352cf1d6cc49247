"""The catalog: every entry is a mechanism written the way `str` writes it, with a source and a sentence."""

import re
from collections import Counter

import pytest

from attnlab.mechanisms import CATALOG, REGISTRY, UNIFORM, Entry, Mechanism, parse_line
from attnlab.mechanisms.catalog import ENTRIES

entries = pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)


@entries
def test_an_entry_is_found_by_its_name(entry: Entry) -> None:
    assert CATALOG[entry.name] is entry
    assert parse_line(entry.name) == parse_line(f" {entry.name} ") == entry.mechanism
    assert entry.name not in UNIFORM or Mechanism.parse(entry.name) == UNIFORM[entry.name] == entry.mechanism


@entries
def test_an_entry_is_written_as_str_writes_it(entry: Entry) -> None:
    assert str(entry.mechanism) == entry.line


@entries
def test_an_entry_has_a_source_and_one_sentence(entry: Entry) -> None:
    assert re.fullmatch(
        r"attnlab|(after )?Shin 2025|(after )?[A-ZÀ-Ž]\w+( et al\.| & \w+)? \d{4}, (arXiv:\d{4}\.\d{4,5}|'.+')",
        entry.paper,
    )
    assert entry.sentence.endswith(".")
    assert "\n" not in entry.sentence
    assert 20 < len(entry.sentence) < 100


@entries
def test_a_name_is_words_joined_by_dashes(entry: Entry) -> None:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", entry.name)


def test_names_and_mechanisms_are_there_once() -> None:
    assert len(CATALOG) == len(ENTRIES)
    lines = Counter(entry.line for entry in ENTRIES)
    assert [line for line, times in lines.items() if times > 1] == []


@pytest.mark.parametrize("name", sorted(set(CATALOG) & set(REGISTRY)))
def test_a_name_that_is_a_stage_too_means_the_same(name: str) -> None:
    assert CATALOG[name].mechanism == Mechanism.parse(f"{name}()")


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("baseline", "dot | softmax"),
        ("value-bypass", "dot | softmax | bypass(alpha=0.5)"),
        ("cottention", "cosine | identity(divide=learned)"),
        ("qk-norm", "cosine(scale=learned) | softmax"),
        ("sigmoid-attention", "dot | sigmoid"),
        ("relu-attention", "dot | relu(divide=n)"),
        ("softmax-off-by-one", "dot | softmax1"),
        ("l2-attention", "euclidean | softmax"),
        ("l1-attention", "manhattan | softmax"),
        ("sparsemax", "dot | sparsemax"),
        ("entmax", "dot | entmax15"),
        ("value-residual", "dot | softmax | value_residual"),
        ("output-gate", "dot | softmax | gate(per=channel)"),
        ("gemma-hybrid", "dot | softmax | window(64) @ 0-4 every 6; dot | softmax @ 5 every 6"),
        ("grouped-query", "dot | softmax | heads(kv=2)"),
        ("multi-query", "dot | softmax | heads(kv=1)"),
    ],
)
def test_the_variants_of_the_literature_are_there(name: str, line: str) -> None:
    assert CATALOG[name].line == line


def test_every_stage_is_used_by_some_entry() -> None:
    used = {item.name for entry in ENTRIES for item in entry.mechanism.list_written_stages()}
    # positions(model), the default, is never written, and a mixer is a module of the user.
    assert set(REGISTRY) - used == {"positions", "mixer"}


def test_uniform_leaves_out_the_entries_by_layer() -> None:
    assert set(CATALOG) - set(UNIFORM) == {"gemma-hybrid", "qwen3-next-like"}


def test_faults_are_marked_as_specimens() -> None:
    specimens = {entry.name for entry in ENTRIES if entry.specimen}
    assert {"leaking-mask", "zero-mask"} <= specimens
    assert "baseline" not in specimens


def test_the_catalog_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        CATALOG["mine"] = CATALOG["baseline"]  # type: ignore[index]
