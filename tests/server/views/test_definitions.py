"""Explanations: short, whole sentences, each on the page of words."""

import re
from html import unescape

import pytest

from restive.server.views.definitions import WORDS
from server.views.browsing import Browser


@pytest.mark.parametrize("key", WORDS)
def test_an_explanation_has_one_to_three_sentences(key: str) -> None:
    word = WORDS[key]
    assert 1 <= len(re.findall(r"[.](?:\s|$)", word.means)) <= 3
    assert word.means.endswith(".")
    assert re.fullmatch(r"[a-z-]+", key)


def test_all_words_are_on_their_page_under_their_own_address(viewer: Browser) -> None:
    page = unescape(viewer.get("/words").text)
    for key, word in WORDS.items():
        assert f'<dt id="{key}">{word.title}</dt><dd>{word.means}</dd>' in page
