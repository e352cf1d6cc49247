"""The report opens offline: one file, nothing loaded, nothing run, and nothing it is given becomes markup."""

import dataclasses
import re
from html.parser import HTMLParser

import pytest

from attnlab.reports.catalog import catalog_page
from attnlab.reports.catalog.catalog_results import CatalogResults

VOID = {"meta"}


class Elements(HTMLParser):
    """Collects every element and attribute, and checks that what is opened is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_nothing_is_loaded_and_nothing_is_run(shown: CatalogResults) -> None:
    text = catalog_page.render_catalog_page(shown, "attnlab mechanisms")
    elements = Elements(text)
    assert elements.open == []
    assert not {"script", "link", "img", "iframe", "object"} & {tag for tag, _ in elements.found}
    assert not re.search(r"@import|url\(|\bon\w+=|javascript:", text)
    for tag, attributes in elements.found:
        assert not {"src", "srcset", "data"} & set(attributes)
        assert "href" not in attributes or tag == "a"
    policy = next(attributes["content"] for _, attributes in elements.found if "http-equiv" in attributes)
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"


def test_pictures_of_one_page_do_not_share_names(shown: CatalogResults) -> None:
    names = [
        attributes["id"]
        for _, attributes in Elements(catalog_page.render_catalog_page(shown, "")).found
        if "id" in attributes
    ]
    assert len(names) == len(set(names))


def test_what_is_shown_is_escaped(shown: CatalogResults) -> None:
    hostile = "<script>alert(1)</script>&\"'"
    entry = dataclasses.replace(shown.mechanisms[0].entry, name=hostile, line=hostile, sentence=hostile, paper=hostile)
    result = dataclasses.replace(shown.mechanisms[0], entry=entry)
    picture = dataclasses.replace(shown.pictures[0], title=hostile, sentence=hostile)
    point = dataclasses.replace(shown.points[0], name=hostile)
    text = catalog_page.render_catalog_page(
        dataclasses.replace(shown, mechanisms=[result], pictures=[picture], points=[point]),
        f"attnlab mechanisms --page {hostile}",
    )
    assert "script" not in {tag for tag, _ in Elements(text).found}
    assert text.count("&lt;script&gt;alert(1)") >= 7


@pytest.mark.parametrize(
    ("paper", "parts"),
    [
        ("Bahdanau et al. 2014, arXiv:1409.0473", ("Bahdanau et al. 2014, ", "1409.0473")),
        ("Qiu et al. 2025, arXiv:2505.06708", ("Qiu et al. 2025, ", "2505.06708")),
        ("Miller 2023, 'Attention is off by one'", ("Miller 2023, 'Attention is off by one'", "")),
    ],
)
def test_papers_in_the_arxiv_are_linked(paper: str, parts: tuple[str, str]) -> None:
    assert catalog_page.split_citation(paper) == parts


def test_what_was_run_can_be_run_again(shown: CatalogResults) -> None:
    facts = catalog_page.list_facts(shown, "attnlab mechanisms --out here")
    assert facts["Command"] == "attnlab mechanisms --out here"
    assert str(shown.machine) == facts["Machine"]
    assert "length 16" in facts["Timed on"]
    assert "length 9" in facts["Checked on"]
