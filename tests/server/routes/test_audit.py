from restive.api.types import AuditEntry, Event, Page
from server.calling import Caller


def test_events_are_listed_in_order_without_names(caller: Caller) -> None:
    caller.desk.program("shops").decide({"annabel": "low"})
    page = caller.get("events", Page[Event])
    assert [event["kind"] for event in page["items"]] == ["created", "joined", "decided"]
    assert [event["round"] for event in page["items"]] == [None, None, 1]
    assert "annabel" not in str(page)
    assert [event["number"] for event in caller.get("events?after=2", Page[Event])["items"]] == [2]
    assert caller.get("events?after=9", Page[Event])["items"] == []


def test_the_audit_log_of_a_program_has_only_its_entries(caller: Caller) -> None:
    caller.desk.create("other", states=["a", "b"])
    program = caller.desk.program("shops")
    program.decide({"ann": "low"})
    program.cancel(1)
    first = caller.get("audit?limit=2", Page[AuditEntry])
    assert [(entry["verb"], entry["round"]) for entry in first["items"]] == [("cancelled", 1), ("decided", 1)]
    rest = caller.get(first["next"] or "", Page[AuditEntry])
    assert [entry["verb"] for entry in rest["items"]] == ["created"]
    assert rest["next"] is None
