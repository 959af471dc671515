"""The list of programs."""

from pathlib import Path

from desk.test_desk import OWN

from restive.desk import Desk
from restive.desk.status import summarize
from restive.server.views.programs import describe
from server.views.browsing import Browser, Site


def test_users_see_the_programs_that_they_have_access_to(viewer: Browser, played: Site) -> None:
    assert [card["name"] for card in viewer.get("/.json").json()["programs"]] == ["demo", "odd", "new"]
    stranger = played.browser("stranger")
    assert [card["name"] for card in stranger.get("/.json").json()["programs"]] == ["new"]
    assert "demo" not in stranger.get("/").text


def test_a_card_has_the_numbers_of_the_desk(viewer: Browser, played: Site) -> None:
    card = viewer.get("/.json").json()["programs"][0]
    known = summarize(played.desk.program("demo"))
    assert {key: card[key] for key in ("people", "rounds", "waiting", "policy")} == {
        key: known[key] for key in ("people", "rounds", "waiting", "policy")
    }
    assert card["title"] == "Pharmacy orders"


def test_an_unreadable_program_is_shown_without_the_path_of_its_policy(tmp_path: Path) -> None:
    (tmp_path / "fair.py").write_text(OWN)
    with Desk(tmp_path / "desk.db") as desk:
        desk.create("own", states=["low", "high"], rewards=[0, 1], budget=1, policy=str(tmp_path / "fair.py"))
        assert describe(summarize(desk.program("own")))["policy"] == "fair.py"
        (tmp_path / "fair.py").unlink()
        card = describe(summarize(desk.program("own")))
    assert (card["name"], card["readable"]) == ("own", False)
    assert str(tmp_path) not in str(card)
