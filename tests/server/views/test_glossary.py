"""The page of words."""

from server.views.browsing import Browser


def test_words_stand_in_the_order_of_the_alphabet(viewer: Browser) -> None:
    titles = [word["title"] for word in viewer.get("/words.json").json()["words"].values()]
    assert titles == sorted(titles)
