"""The list of programs, and the form for a new one."""

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from desk.test_desk import OWN

from restive.desk import Desk
from restive.desk.config import TEMPLATES
from restive.desk.desk import make_config
from restive.desk.status import summarize
from restive.server.views.programs import PLAIN_WORDS, describe_program, learners
from restive.server.views.upload import preview_states
from server.views.browsing import CROSS_SITE, Browser, Site, open_site, read_filled, read_text


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv("RESTIVE_KEYS", str(tmp_path / "keys"))
    with open_site(tmp_path) as opened:
        yield opened


@pytest.fixture
def browser(site: Site) -> Browser:
    return site.browser("admin")


def read_form(browser: Browser, template: str) -> dict[str, str]:
    """All fields of the form as they are filled in."""
    return read_filled(browser.get(f"/new?template={template}").text)


def send(browser: Browser, fields: dict[str, str]) -> tuple[int, str]:
    answer = browser.post("/new", fields)
    return answer.status_code, answer.headers.get("location") or answer.text


def test_a_program_with_costs_is_made_and_its_pages_show_them(site: Site, browser: Browser) -> None:
    fields = {**read_form(browser, "own"), "name": "visits", "budget": "10", "cost_unit": "km", "control": "0"}
    assert send(browser, fields)[0] == 303
    program = site.desk.program("visits")
    assert program.config.cost_unit == "km"
    table = [{"agent": name, "state": 0, "cost": cost} for name, cost in (("ann", 2.25), ("ben", 30), ("cem", 4))]
    chosen = program.decide(table).chosen
    assert sorted(chosen) == ["ann", "cem"]
    program.learn([{"agent": "ann", "done": True, "next_state": 1}])
    pages = {name: read_text(browser.get(f"/programs/visits/{name}").text) for name in ("list", "status", "states")}
    assert "10 km the list costs 6.25 km" in pages["list"]
    assert "2.25 km" in pages["list"]
    assert "2.25 km spent; budget 10 km a round" in pages["status"]
    assert "What you can spend in this round, in km." in pages["states"]
    assert "2.25 km of 6.25 km spent" in read_text(browser.get("/programs/visits/rounds/1").text)
    assert " 4 km " in read_text(browser.get("/programs/visits/person?agent=cem").text)
    assert browser.get("/programs/visits/list.json").json()["people"][0]["cost"] in (2.25, 4.0)


def test_users_see_the_programs_that_they_have_access_to(viewer: Browser, played: Site) -> None:
    assert [card["name"] for card in viewer.get("/.json").json()["programs"]] == ["demo", "odd", "new"]
    limited = played.browser("limited")
    assert [card["name"] for card in limited.get("/.json").json()["programs"]] == ["new"]
    assert "demo" not in limited.get("/").text


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
        assert describe_program(summarize(desk.program("own")))["policy"] == "fair.py"
        (tmp_path / "fair.py").unlink()
        card = describe_program(summarize(desk.program("own")))
    assert (card["name"], card["readable"]) == ("own", False)
    assert str(tmp_path) not in str(card)


def test_every_template_can_be_chosen(browser: Browser) -> None:
    page = browser.get("/new").text
    for name, template in TEMPLATES.items():
        assert f'href="/new?template={name}"' in page
        assert template["about"] in unescape(page)
    assert browser.get("/new?template=nothing").status_code == 404


@pytest.mark.parametrize("template", TEMPLATES)
def test_the_form_of_a_template_makes_the_program_that_the_template_makes(
    site: Site, browser: Browser, template: str
) -> None:
    answer = send(browser, read_form(browser, template) | {"name": "mine"})
    assert answer == (303, "/programs/mine/states#main")
    assert site.desk.program("mine").config == make_config("mine", template)
    assert site.desk.store.audit_log(None)[0].by.startswith("the-admin (token ")


def test_a_program_without_a_template_has_its_own_states_words_and_rules(site: Site, browser: Browser) -> None:
    fields = read_form(browser, "own") | {
        "name": "visits", "state-0": "ill", "reward-0": "-1,5", "state-1": "", "reward-1": "", "state-2": "well",
        "reward-2": "2", "budget": "7", "control": "0.25", "cool_down": "3", "keep": "4", "horizon": "12", "seed": "5",
        "shares": "north = 0.3\nsouth=0.2", "shadow": "egt", "policy": "random", "word-person": "patient",
    }  # fmt: skip
    assert send(browser, fields)[0] == 303
    config = site.desk.program("visits").config
    assert (config.states, config.rewards) == (("ill", "well"), (-1.5, 2.0))
    assert (config.budget, config.control, config.cool_down, config.keep, config.horizon, config.seed) == (
        7,
        0.25,
        3,
        4,
        12,
        5,
    )
    assert (config.shares, config.shadow, config.policy) == ({"north": 0.3, "south": 0.2}, "egt", "random")
    assert (config.words.person, config.words.people) == ("patient", "people")


@pytest.mark.parametrize(
    ("title", "name", "shown"),
    [("Mothers in Thane", "mothers-in-thane", "Mothers in Thane"), ("calls", "calls", ""), ("!!", "program", "!!")],
)
def test_the_short_name_follows_from_the_name(site: Site, browser: Browser, title: str, name: str, shown: str) -> None:
    fields = read_form(browser, "maternal-health") | {"title": title, "control": "12,5 %"}
    assert send(browser, fields) == (303, f"/programs/{name}/states#main")
    config = site.desk.program(name).config
    assert (config.title, config.control) == (shown, 0.125)
    status, page = send(browser, fields | {"key": "another"})
    assert status == 409
    assert 'id="wrong-title"' in page


def test_a_program_can_spend_at_most_its_budget(site: Site, browser: Browser) -> None:
    fields = read_form(browser, "pharmacy") | {"name": "mine"}
    assert send(browser, fields)[0] == 303
    assert send(browser, fields | {"name": "careful", "at_most": "yes", "key": "another"})[0] == 303
    assert [site.desk.program(name).config.spend for name in ("mine", "careful")] == ["exactly", "at most"]


def test_rewards_can_be_reported(site: Site, browser: Browser) -> None:
    fields = read_form(browser, "pharmacy") | {"name": "mine", "reported": "yes", "reward_range": "9"}
    assert send(browser, fields)[0] == 303
    config = site.desk.program("mine").config
    assert (config.rewards, config.reward_range) == (None, 9.0)


def test_all_errors_are_shown_at_their_fields(site: Site, browser: Browser) -> None:
    bad = {
        "name": "two words", "budget": "many", "control": "1.5", "cool_down": "-1", "keep": "2.5", "horizon": "0",
        "seed": "x", "shares": "north", "reward_range": "0", "reward-1": "lots", "word-person": "x" * 61,
    }  # fmt: skip
    status, page = send(browser, read_form(browser, "pharmacy") | bad)
    assert status == 422
    wrong = dict(re.findall(r'id="wrong-([\w-]+)">(.*?)</p>', page))
    fields = {"states" if name == "reward-1" else name for name in bad}
    assert set(wrong) == fields
    assert "Budget is &#39;many&#39;; it must be a whole number from 0 to" in wrong["budget"]
    for name, typed in bad.items():
        assert f'value="{typed}"' in page or f">{typed}</textarea>" in page, name
    assert len(site.desk.programs()) == 1


@pytest.mark.parametrize(
    "states", [("low", ""), ("low", "low"), ("low", "LOW"), ("", ""), ("low", "hi\u200bgh\u0007")], ids=repr
)
def test_invalid_states_are_refused_at_their_field(browser: Browser, states: tuple[str, str]) -> None:
    fields = read_form(browser, "own") | {"name": "mine", "state-0": states[0], "state-1": states[1]}
    status, page = send(browser, fields)
    assert status == 422
    assert 'id="wrong-states"' in page


def test_an_existing_name_is_refused_at_its_field(site: Site, browser: Browser) -> None:
    status, page = send(browser, read_form(browser, "pharmacy") | {"name": "coupons"})
    assert status == 409
    assert 'id="wrong-name"' in page
    assert "desk.db" not in page, "the place of the store is nobody's business"


def test_a_double_click_creates_one_program(site: Site, browser: Browser) -> None:
    fields = read_form(browser, "pharmacy") | {"name": "mine"}
    assert [send(browser, fields)[0] for _ in range(2)] == [303, 303]
    assert len(site.desk.programs()) == 2


@pytest.mark.parametrize("field", ["policy", "shadow"])
def test_no_file_of_the_server_can_be_a_policy(site: Site, browser: Browser, tmp_path: Path, field: str) -> None:
    place = tmp_path / "mine.py"
    place.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    status, page = send(browser, read_form(browser, "pharmacy") | {"name": "mine", field: str(place)})
    assert status == 422
    assert f'id="wrong-{field}"' in page
    assert not (tmp_path / "ran").exists()


def test_a_policy_that_plans_to_the_horizon_needs_one(site: Site, browser: Browser) -> None:
    fields = read_form(browser, "pharmacy") | {"name": "mine", "policy": "rma2b"}
    status, page = send(browser, fields)
    assert status == 422
    assert "up to the horizon" in read_text(page)
    assert send(browser, fields | {"horizon": "12"})[0] == 303


def test_only_learning_policies_are_offered() -> None:
    assert "lagrange" in learners()
    assert not any("oracle" in name for name in learners())


def test_pseudonyms_keep_ids_out_of_the_store(site: Site, browser: Browser) -> None:
    assert send(browser, read_form(browser, "own") | {"name": "mine", "pseudonyms": "yes"})[0] == 303
    assert site.desk.program("mine").config.pseudonyms


def test_words_with_markup_are_shown_as_they_are(site: Site, browser: Browser) -> None:
    fields = read_form(browser, "own") | {"name": "mine", "word-people": "<b>people</b>"}
    assert send(browser, fields)[0] == 303
    page = browser.get("/programs/mine/states").text
    assert "<b>people" not in page
    assert "<b>people</b>" in read_text(page) or "&lt;b&gt;people" in page


@pytest.mark.parametrize("role", ["viewer", "operator"])
def test_only_an_admin_of_the_store_creates_programs(site: Site, role: str) -> None:
    browser = site.browser(role)
    assert browser.get("/new").status_code == 403
    assert browser.post("/new", {"name": "mine", "template": "pharmacy"}).status_code == 403


def test_a_form_from_another_site_creates_nothing(site: Site, browser: Browser) -> None:
    fields = read_form(browser, "pharmacy") | {"name": "mine"}
    assert browser.post("/new", fields, headers=CROSS_SITE).status_code == 403
    assert len(site.desk.programs()) == 1


def test_states_that_fall_are_created_only_after_a_second_look(site: Site, browser: Browser) -> None:
    fields = read_form(browser, "own") | {"name": "mine", "reward-0": "1", "reward-1": "0"}
    status, page = send(browser, fields)
    assert status == 422
    assert "The reward of high is below that of low" in page
    assert len(site.desk.programs()) == 1
    assert send(browser, fields | {"sure": "yes"})[0] == 303
    assert site.desk.program("mine").config.rewards == (1.0, 0.0)


def test_the_form_says_how_large_an_effect_the_control_group_can_show(browser: Browser) -> None:
    assert (
        "In 12 weeks a control group of 10% can show an effect of about" in browser.get("/new?template=pharmacy").text
    )


def test_an_empty_server_offers_simulated_people(tmp_path: Path, site: Site, browser: Browser) -> None:
    answer = browser.post("/demo", {})
    assert (answer.status_code, answer.headers["location"]) == (303, "/programs/demo/status#main")
    assert browser.post("/demo", {}).headers["location"] == "/programs/demo-2/status#main"
    program = site.desk.program("demo")
    assert len(program.rounds) == 30
    assert program.rounds[0].at < program.rounds[-1].at
    assert site.browser("viewer").post("/demo", {}).status_code == 403


def test_a_waiting_list_and_features_come_from_the_form(site: Site, browser: Browser) -> None:
    fields = read_form(browser, "pharmacy") | {
        "name": "later",
        "control_until": "6",
        "features": "age\nregion=north,south",
    }
    assert send(browser, fields) == (303, "/programs/later/states#main")
    config = site.desk.program("later").config
    assert (config.control_until, config.features) == (6, {"age": (), "region": ("north", "south")})
    assert "until round 6" in read_text(browser.get("/programs/later/settings").text)
    status, page = send(browser, fields | {"name": "never", "control": "0", "features": "age=old"})
    assert status == 422
    for sentence in ("needs a control group", "give two or more different names"):
        assert sentence in read_text(page)


def test_every_policy_is_explained_in_plain_words(browser: Browser) -> None:
    assert set(PLAIN_WORDS) == set(learners())
    assert "lagrange: learns from people who are alike" in read_text(browser.get("/new?template=own").text)


def test_a_share_of_a_group_that_nobody_is_in_is_noted_with_the_first_table(site: Site) -> None:
    program = site.desk.create("thane", states=["low", "high"], rewards=[0, 1], shares={"thane": 0.3})
    people = [{"agent": str(n), "state": "low", "group": "Thane"} for n in range(5)]
    preview = preview_states(program, {"states": people})
    assert "nobody is in the group thane, which has a share; did you mean 'Thane'?" in preview["notes"]
