"""The page: all sections, only its own scripts, and text of a dataset that stays text."""

import json
import re

from .reading import Elements


def test_every_section_is_there_and_in_order(page: str) -> None:
    names = ["effects", "curves", "results", "audits", "attention", "traces", "samples", "data", "words"]
    names += ["origin", "integrity", "limits"]
    assert re.findall(r'<section id="(\w+)"', page) == names


def test_nothing_is_loaded_and_only_our_own_scripts_run(page: str) -> None:
    elements = Elements(page)
    assert elements.open == []
    assert not {"link", "img", "iframe", "object", "base", "form"} & {tag for tag, _ in elements.found}
    for tag, attributes in elements.found:
        assert not {"src", "srcset", "style"} & set(attributes)
        assert not [name for name in attributes if name.startswith("on")]
        assert "href" not in attributes or (tag == "a" and str(attributes["href"]).startswith("#"))
    assert len([text for kind, text in elements.scripts if kind is None]) == 2
    policy = next(attributes["content"] for _, attributes in elements.found if "http-equiv" in attributes)
    assert policy is not None
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy


def test_hostile_text_stays_text(page: str) -> None:
    assert page.count("&lt;script&gt;alert(1)") >= 4
    assert "<script>alert" not in page
    assert "{{ 7 * 7 }}" in page
    specs = [json.loads(text) for kind, text in Elements(page).scripts if kind == "application/json"]
    assert len(specs) >= 6
    assert all("$schema" in spec for spec in specs)


def test_pictures_of_one_page_do_not_share_names(page: str) -> None:
    names = [attributes["id"] for _, attributes in Elements(page).found if "id" in attributes]
    assert len(names) == len(set(names))
