"""A backup that is put back under a running server: one write is refused, then all goes on from there."""

from desk.backups import Backup

from restive.api.types import Program
from restive.desk.replay import replay
from server.calling import API, CSV, STATES, Caller, as_rows, check_failure

LIST = f"{API}/programs"
SENTENCE = (
    "The store was restored from a backup or replaced since the program was last read. "
    "Nothing was recorded; check the program and send the request again."
)


def decide(caller: Caller, **given: object) -> int:
    return caller.call("POST", "rounds", json={"states": as_rows(), "again": True}, **given).status_code


def address_of(caller: Caller) -> str:
    url = caller.desk.store._engine.url
    return caller.desk.store.address if url.drivername == "sqlite" else url.render_as_string(hide_password=False)


def test_a_server_goes_on_from_a_restored_store_after_one_refused_write(anywhere: Caller) -> None:
    assert decide(anywhere) == 201
    backup = Backup(address_of(anywhere))
    assert [decide(anywhere), decide(anywhere)] == [201, 201]
    backup.restore()
    refused = anywhere.call("POST", "rounds", json={"states": as_rows(), "again": True})
    problem = check_failure(refused, 503)
    assert (problem["type"], problem["detail"], problem["recorded"]) == ("/api#store_restored", SENTENCE, False)
    assert int(refused.headers["Retry-After"]) > 0
    assert anywhere.call("POST", "rounds", json={"states": as_rows(), "again": True}).json()["round"] == 2
    assert replay(anywhere.desk.program("shops")).proven


def test_reads_and_etags_show_what_the_restored_store_has(anywhere: Caller) -> None:
    assert decide(anywhere) == 201
    backup = Backup(address_of(anywhere))
    assert decide(anywhere) == 201
    before = anywhere.call("GET", f"{LIST}/shops")
    backup.restore()
    anywhere.desk.program("shops").decide(dict.fromkeys(STATES, "low"), again=True)
    after = anywhere.call("GET", f"{LIST}/shops", headers={"If-None-Match": before.headers["ETag"]})
    assert (after.status_code, after.json()["events"]) == (200, before.json()["events"])
    again = anywhere.call("GET", f"{LIST}/shops", headers={"If-None-Match": after.headers["ETag"]})
    assert again.status_code == 304
    assert decide(anywhere) == 201
    backup.restore()
    assert anywhere.get(f"{LIST}/shops", Program)["rounds"] == 1
    assert anywhere.call("GET", "rounds/1").status_code == 200
    assert anywhere.call("GET", "rounds/2").status_code == 404


def test_a_program_is_not_taken_for_another_that_got_its_number(anywhere: Caller) -> None:
    backup = Backup(address_of(anywhere))
    for name in ("first", "second"):
        anywhere.desk.create(name, states=["low", "high"]).decide({name: "low"})
        assert anywhere.call("GET", f"{LIST}/{name}/rounds/1").status_code == 200
        assert anywhere.call("GET", f"{LIST}/{name}/audit").status_code == 200
        backup.restore()
    assert anywhere.desk.create("second", states=["low", "high"]).rounds == []
    for path in ("", "/rounds/1", "/audit", "/events"):
        assert anywhere.call("GET", f"{LIST}/first{path}").status_code == 404
    assert anywhere.call("GET", f"{LIST}/second").json()["rounds"] == 0
    table = "agent,state\nann,low\n"
    answers = [anywhere.call("POST", f"{LIST}/first/rounds", content=table, headers=CSV) for _ in range(2)]
    assert answers[0].status_code in (404, 503)
    assert answers[1].status_code == 404
    assert anywhere.call("POST", f"{LIST}/second/rounds", content=table, headers=CSV).status_code == 201


def test_a_damaged_program_hides_no_other(anywhere: Caller) -> None:
    desk = anywhere.desk
    desk.create("other", states=["low", "high"])
    for name in ("wrong", "short"):
        desk.create(name, states=["low", "high"]).decide({"ann": "low"})
    wrong, short = (desk.program(name).id for name in ("wrong", "short"))
    with desk.store.transact() as connection:
        connection.exec_driver_sql(f"UPDATE events SET header = '{{' WHERE program = {wrong} AND number = 2")
        connection.exec_driver_sql(f"DELETE FROM parts WHERE program = {short} AND event = 1")
    items = anywhere.call("GET", LIST).json()["items"]
    assert [(item["name"], item["error"] is None) for item in items] == [
        ("shops", True),
        ("other", True),
        ("wrong", False),
        ("short", False),
    ]
    page = anywhere.call("GET", "/", headers={"Accept": "text/html"})
    assert page.status_code == 200
    assert all(name in page.text for name in ("shops", "other", "wrong", "short"))
    assert check_failure(anywhere.call("GET", f"{LIST}/wrong"), 503)["type"] == "/api#store_unavailable"
    assert anywhere.call("GET", f"{LIST}/other").status_code == 200
