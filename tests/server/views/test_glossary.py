"""The glossary: short definitions, all on one page in alphabetical order."""

import re
from html import unescape

import pytest

from restive.server.views.glossary import read_glossary
from server.views.browsing import Browser


@pytest.mark.parametrize("key", read_glossary())
def test_a_definition_has_one_to_three_sentences(key: str) -> None:
    definition = read_glossary()[key].definition
    assert 1 <= len(re.findall(r"[.](?:\s|$)", definition)) <= 3
    assert definition.endswith(".")
    assert re.fullmatch(r"[a-z-]+", key)


def test_the_page_has_every_term_under_its_own_anchor(viewer: Browser) -> None:
    page = unescape(viewer.get("/glossary").text)
    for key, entry in read_glossary().items():
        assert f'<dt id="{key}">{entry.title}</dt><dd>{entry.definition}</dd>' in page


def test_terms_are_in_alphabetical_order(viewer: Browser) -> None:
    titles = [entry["title"] for entry in viewer.get("/glossary.json").json()["glossary"].values()]
    assert titles == sorted(titles)
