from restive.server.errors import Refusal, describe
from restive.server.refusing import show
from server.running import ask, make_plain


def test_a_browser_that_asked_for_a_page_gets_a_sentence_to_read() -> None:
    answer = ask(make_plain(), path="/refuse", headers={"Accept": "text/html,*/*"})
    assert answer.status_code == 406
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "<p>not that.</p>" in answer.text
    assert answer.headers["x-request-id"] in answer.text


def test_the_api_answers_as_ever_even_to_a_browser() -> None:
    answer = ask(make_plain(), path="/api/v1/x", headers={"Accept": "text/html", "Host": "<b>elsewhere</b>"})
    assert answer.json()["status"] == 421


def test_what_is_wrong_is_said_as_text_and_not_as_html() -> None:
    page = show(describe(Refusal(404, "There is no program '<script>'.")))
    assert "&lt;script&gt;" in page
    assert "<script" not in page
