from collections.abc import Iterator
from pathlib import Path

import pytest

from server.views.browsing import CROSS_SITE, Browser, Site, open_site, read_fields, read_text

STATUS = "/programs/coupons/status"
SETTINGS = "/programs/coupons/settings"
NOW = {"step": "change", "budget": "2", "cool_down": "0", "keep": "0", "shares": "", "states_are_outcomes": "yes"}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with open_site(tmp_path) as opened:
        opened.desk.program("coupons").decide({"ann": "low", "ben": "high", "<b>cem</b>": "low", "zebediah": "low"})
        yield opened


@pytest.fixture
def admin(site: Site) -> Browser:
    return site.browser("admin")


@pytest.fixture
def operator(site: Site) -> Browser:
    return site.browser("operator")


def send(browser: Browser, fields: dict[str, str]) -> tuple[int, str]:
    answer = browser.post(SETTINGS, fields)
    return answer.status_code, answer.headers.get("location") or answer.text


def test_settings_change_from_the_next_round_on(site: Site, admin: Browser) -> None:
    wanted = {"budget": "5", "cool_down": "1", "keep": "3", "shares": "north = 0.25\n"}
    assert send(admin, NOW | wanted | {"key": "k1"}) == (303, f"{SETTINGS}#main")
    config = site.desk.program("coupons").config
    assert (config.budget, config.cool_down, config.keep, config.shares) == (5, 1, 3, {"north": 0.25})
    context = site.desk.store.audit_log(None)[0]
    assert (context.by.partition(" (token")[0], context.verb) == ("the-admin", "changed")


def test_a_ticked_box_spends_at_most_the_budget_until_it_is_cleared(site: Site, admin: Browser) -> None:
    send(admin, NOW | {"at_most": "yes", "key": "k1"})
    assert list(site.desk.program("coupons").log())[-1].header == {"spend": "at most"}
    assert 'name="at_most" value="yes" checked' in admin.get(SETTINGS).text
    send(admin, NOW | {"key": "k2"})
    assert site.desk.program("coupons").config.spend == "exactly"


def test_the_unit_of_costs_can_be_changed_where_people_have_costs(site: Site, admin: Browser) -> None:
    assert 'name="cost_unit"' not in admin.get("/programs/coupons/settings").text
    site.desk.create("visits", states=["low", "high"], rewards=[0, 1], budget=10, cost_unit="km", control=0)
    assert 'value="km"' in admin.get("/programs/visits/settings").text
    fields = NOW | {"budget": "10", "shares": "", "cost_unit": "miles", "key": "k1"}
    assert admin.post("/programs/visits/settings", fields).status_code == 303
    assert site.desk.program("visits").config.cost_unit == "miles"


def test_only_changed_settings_are_recorded(site: Site, admin: Browser) -> None:
    send(admin, NOW | {"budget": "5", "key": "k1"})
    assert list(site.desk.program("coupons").log())[-1].header == {"budget": 5}


@pytest.mark.parametrize(
    ("field", "typed", "said"),
    [
        ("budget", "", "budget is ''; it must be a whole number from 0"),
        ("cool_down", "x", "cool_down is 'x'"),
        ("shares", "north=2", "it must lie between 0 and 1"),
        ("shares", "north", "share is 'north'"),
    ],
)
def test_an_invalid_setting_is_refused_and_stays_in_the_form(
    site: Site, admin: Browser, field: str, typed: str, said: str
) -> None:
    status, page = send(admin, NOW | {field: typed, "key": "k1"})
    assert status == 422
    assert said.lower() in read_text(page).lower()
    assert f'value="{typed}"' in page or f">{typed}</textarea>" in page
    assert site.desk.program("coupons").config.budget == 2


def test_a_round_is_cancelled_only_after_confirmation(site: Site, operator: Browser) -> None:
    status, page = send(operator, {"step": "cancel", "round": "1"})
    assert status == 200
    assert "Cancel round 1 (" in read_text(page)
    assert "Its list has 2 people." in read_text(page)
    assert not site.desk.program("coupons").rounds[0].cancelled
    confirmed = {"step": "cancel", "round": "1", "sure": "yes", "key": "k1"}
    assert [send(operator, confirmed) for _ in range(2)] == [(303, f"{SETTINGS}#main")] * 2
    assert site.desk.program("coupons").rounds[0].cancelled
    assert send(operator, confirmed | {"key": "k2"})[0] == 409


def test_the_button_names_what_it_takes_back_and_takes_back_only_that(site: Site, operator: Browser) -> None:
    program = site.desk.program("coupons")
    program.learn([{"agent": "ann", "done": "yes", "next_state": "high"}])
    for place in (STATUS, SETTINGS, STATUS.replace("status", "list")):
        page = operator.get(place).text
        assert ") for 1 person, reported on " in read_text(page)
        assert "Undo the last step" not in site.browser("viewer").get(place).text
    button = read_fields(page.partition('class="undo')[2].partition("</form>")[0])
    status, page = send(operator, button)
    assert (status, "Take this back?" in read_text(page), program.rounds[0].outcomes) == (200, True, 1)
    button |= {"sure": "yes"}
    assert [send(operator, button) for _ in range(2)] == [(303, f"{STATUS}#main")] * 2
    assert program.rounds[0].outcomes == 0
    assert "Undo the last step list of round 1 (" in read_text(operator.get(STATUS).text)
    status, page = send(operator, button | {"key": "another tab"})
    assert (status, f"Event {button['event']} does not begin" in page) == (409, True)
    assert len(program.rounds) == 1


@pytest.mark.parametrize(("number", "status"), [("9", 404), ("0", 422), ("x", 422), ("", 422)])
def test_a_missing_round_cannot_be_cancelled(operator: Browser, number: str, status: int) -> None:
    assert send(operator, {"step": "cancel", "round": number})[0] == status


def test_a_round_with_outcomes_is_not_offered_for_cancelling(site: Site, operator: Browser) -> None:
    site.desk.program("coupons").learn([{"agent": "ann", "done": "yes", "next_state": "high"}])
    assert "No round can be cancelled." in read_text(operator.get(SETTINGS).text)
    assert send(operator, {"step": "cancel", "round": "1"})[0] == 409


def test_people_who_left_are_removed(site: Site, operator: Browser) -> None:
    assert send(operator, {"step": "leave", "agents": "ann\n<b>cem</b>\n\n", "key": "k1"}) == (303, f"{SETTINGS}#main")
    assert int(site.desk.program("coupons").projection.agents.active.sum()) == 2


def test_nobody_is_removed_if_one_id_is_unknown(site: Site, operator: Browser) -> None:
    status, page = send(operator, {"step": "leave", "agents": "ann\n<i>dan</i>", "key": "k1"})
    assert status == 422
    assert "&lt;i&gt;dan&lt;/i&gt;: not in the program coupons." in page
    assert "ann\n&lt;i&gt;dan&lt;/i&gt;</textarea>" in page
    assert int(site.desk.program("coupons").projection.agents.active.sum()) == 4


def test_an_id_is_erased_only_when_it_is_typed_twice(site: Site, admin: Browser) -> None:
    status, page = send(admin, {"step": "erase", "agent": "<b>cem</b>"})
    assert status == 200
    assert "Erase &lt;b&gt;cem&lt;/b&gt;?" in page
    confirmed = read_fields(page.partition('id="erase"')[2].partition("</form>")[0])
    assert confirmed["agent"] == "<b>cem</b>"
    status, page = send(admin, confirmed | {"again": "cem"})
    assert status == 422
    assert "The two ids differ, so nothing was erased." in read_text(page)
    assert "<b>cem</b>" in site.desk.store.names(site.desk.program("coupons").id).to_list()
    assert send(admin, confirmed | {"again": "<b>cem</b>"}) == (303, f"{SETTINGS}#main")
    assert site.desk.store.names(site.desk.program("coupons").id).to_list().count(None) == 1


def test_an_unknown_id_cannot_be_erased(admin: Browser) -> None:
    status, page = send(admin, {"step": "erase", "agent": "nobody"})
    assert status in (404, 422)
    assert "not in the program" in read_text(page)


def test_an_erased_id_is_nowhere_in_the_store(site: Site, admin: Browser, tmp_path: Path) -> None:
    admin.post(SETTINGS, {"step": "leave", "agents": "zebediah", "key": "k0"})
    send(admin, {"step": "erase", "agent": "zebediah", "again": "zebediah", "key": "k1"})
    site.desk.store.purge_deleted()
    held = b"".join(place.read_bytes() for place in tmp_path.glob("desk.db*"))
    assert b"zebediah" not in held


@pytest.mark.parametrize("step", [{"step": "erase", "agent": "ann", "again": "ann"}, NOW | {"budget": "9"}])
def test_an_operator_cannot_take_the_steps_of_an_admin(site: Site, operator: Browser, step: dict[str, str]) -> None:
    assert send(operator, step)[0] == 403
    page = operator.get(SETTINGS).text
    assert 'value="erase"' not in page
    assert 'value="change"' not in page
    assert site.desk.program("coupons").config.budget == 2


def test_display_columns_are_changed_by_line_and_stay_if_the_form_has_no_field(site: Site, admin: Browser) -> None:
    assert 'name="display"' in admin.get(SETTINGS).text
    for fields in ({"display": "Name\nPhone number\n"}, {"budget": "3"}):
        send(admin, NOW | fields)
        assert site.desk.program("coupons").config.display == ("name", "phone_number")
    status, text = send(admin, NOW | {"display": "state"})
    assert (status, "A display column is called 'state'" in read_text(text)) == (422, True)
    send(admin, NOW | {"display": ""})
    assert site.desk.program("coupons").config.display == ()


def test_a_viewer_cannot_see_the_settings(site: Site) -> None:
    viewer = site.browser("viewer")
    assert viewer.get(SETTINGS).status_code == 403
    assert viewer.post(SETTINGS, {"step": "cancel", "round": "1", "sure": "yes"}).status_code == 403


def test_a_form_from_another_site_changes_nothing(site: Site, admin: Browser) -> None:
    assert admin.post(SETTINGS, NOW | {"budget": "9"}, headers=CROSS_SITE).status_code == 403
    assert site.desk.program("coupons").config.budget == 2


def test_a_form_without_a_known_step_is_refused(admin: Browser) -> None:
    assert send(admin, {"step": "explode"})[0] == 400


def test_a_program_is_archived_restored_and_deleted(tmp_path: Path) -> None:
    with open_site(tmp_path) as site:
        admin, place = site.browser("admin"), "/programs/coupons/settings"
        assert "Archived programs" not in admin.get("/").text
        assert admin.post(place, {"step": "archive"}).status_code == 303
        assert "/programs/coupons/status" not in admin.get("/").text
        assert "Archived programs (1)" in read_text(admin.get("/").text)
        assert "/programs/coupons/status" in admin.get("/?archived=yes").text
        assert "This program is archived." in read_text(site.browser("viewer").get("/programs/coupons/status").text)
        archived = read_text(admin.get(place).text)
        assert ("Change settings" in archived, "Cancel a round" in archived, "Erase an id" in archived) == (
            False,
            False,
            True,
        )
        refused = admin.post(place, {"step": "change", "budget": "7", "cool_down": "0", "keep": "2"})
        assert (refused.status_code, "restore it first" in refused.text) == (409, True)
        admin.post(place, {"step": "restore"})
        assert "/programs/coupons/status" in admin.get("/").text
        wrong = admin.post("/programs/coupons/delete", {"confirm": "coupon"})
        assert (wrong.status_code, "repeat its name" in wrong.text) == (422, True)
        assert site.browser("operator").post("/programs/coupons/delete", {"confirm": "coupons"}).status_code == 403
        for _ in range(2):  # a double click
            done = admin.post("/programs/coupons/delete", {"confirm": "coupons", "key": "k1"})
            assert (done.status_code, done.headers["location"]) == (303, "/#main")
        assert admin.get("/programs/coupons/status").status_code == 404
        assert "Deleted the program coupons with 1 events" in read_text(admin.get("/audit").text)


def test_pages_show_the_title(site: Site, admin: Browser) -> None:
    assert admin.post(SETTINGS, {**NOW, "title": "Calls <b>north</b>"}).status_code == 303
    for path in ("/", "/programs/coupons/status", "/programs/coupons/list", SETTINGS):
        assert "Calls &lt;b&gt;north&lt;/b&gt;" in admin.get(path).text, path
    assert site.desk.program("coupons").config.title == "Calls <b>north</b>"
