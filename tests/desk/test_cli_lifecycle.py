"""The end of a program, as library and as command: archived, restored, deleted, on both databases."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from desk.appending import PROCESSES, delete_and_die
from desk.test_cli import Call, call, shops
from restive.desk import Desk, Program, Repeated, RequestContext
from restive.desk.database import program_tables, programs
from restive.desk.replay import replay
from restive.desk.tokens import Principal, find_principal, list_tokens, make_token
from restive.errors import Conflict, InputError, NotFound

__all__ = ["call", "shops"]
KEY = RequestContext(by="boss", key="k1")


@pytest.fixture
def opened(address: str) -> Iterator[Desk]:
    """Two programs, each with a round."""
    with Desk(address) as desk:
        for name in ("coupons", "visits"):
            make(desk, name)
        yield desk


def make(desk: Desk, name: str) -> Program:
    program = desk.create(name, states=["low", "high"], rewards=[0, 1], budget=1, control=0, policy="egt")
    program.decide({f"{name}-ann": "low", f"{name}-ben": "high"})
    return program


def count_rows(desk: Desk, program: int) -> dict[str, int]:
    """The rows of a program in every table that has any."""
    counts = {
        table.name: desk.store.execute(sa.select(sa.func.count()).where(table.c.program == program))[0][0]
        for table in program_tables()
    }
    return {name: count for name, count in counts.items() if count}


def test_an_archived_program_can_be_read_and_restored(opened: Desk) -> None:
    program, other = opened.program("coupons"), opened.program("visits")
    program.archive(dry_run=True)
    assert not program.archived
    program.archive(context=KEY)
    program.archive(context=RequestContext(by="boss", key="k2"))
    with pytest.raises(Repeated):
        program.archive(context=KEY)
    assert [row.name for row in opened.store.programs() if row.archived] == ["coupons"]
    assert replay(program).proven
    for write in (
        lambda: program.decide({"coupons-ann": "high"}),
        lambda: program.learn([{"agent": "coupons-ann", "next_state": "high"}]),
        lambda: program.change(budget=2),
        lambda: program.cancel(1),
        lambda: program.leave(["coupons-ann"], dry_run=True),
    ):
        with pytest.raises(Conflict, match="coupons is archived, so it can only be read; restore it first"):
            write()
    assert program.erase(["coupons-ben"]) == 1  # a right of people that does not end with the program
    other.change(budget=2)
    program.restore(context=RequestContext(by="boss", key="k3"))
    program.restore()
    assert program.decide({"coupons-ann": "high"}).round == 2
    verbs = [row.verb for row in opened.store.audit_log(program.id) if row.verb in ("archived", "restored")]
    assert verbs == ["restored", "archived"]


def test_nothing_of_a_deleted_program_is_left_but_the_fact(opened: Desk) -> None:
    program, other = opened.program("coupons"), opened.program("visits")
    ann = make_token(opened.store, "ann", {"coupons": "admin"})
    ben = make_token(opened.store, "ben", {"coupons": "admin", "visits": "viewer"})
    number, events, before = program.id, opened.store.length(program.id), count_rows(opened, other.id)
    assert {"events", "parts", "roster", "audit_log", "grants"} <= set(count_rows(opened, number))
    assert opened.delete("coupons", "coupons", dry_run=True) == events
    with pytest.raises(InputError, match="repeat its name"):
        opened.delete("coupons", "coupon")
    assert opened.store.length(number) == events
    assert opened.delete("coupons", "coupons", context=KEY) == events
    assert count_rows(opened, number) == {}
    assert opened.store.execute(sa.select(programs.c.name)) == [("visits",)]
    assert count_rows(opened, other.id) == before
    entry = opened.store.audit_log(None, limit=1)[0]
    assert (entry.by, entry.verb, entry.program) == ("boss", "deleted", None)
    assert (entry.answer["program"], entry.answer["events"]) == ("coupons", events)
    assert find_principal(opened.store, ann) is None
    assert find_principal(opened.store, ben) == Principal(2, "ben", {"visits": "viewer"})
    assert [token.name for token in list_tokens(opened.store, valid=True)] == ["ben"]
    make_token(opened.store, "ann", {"visits": "viewer"})  # the name is free


def test_a_deletion_is_idempotent_and_the_name_is_free(opened: Desk) -> None:
    stale = opened.program("coupons")
    assert stale.config.budget == 1
    events = opened.delete("coupons", "coupons", context=KEY)
    with pytest.raises(Repeated) as repeated:
        opened.delete("coupons", "coupons", context=KEY)
    assert repeated.value.answer["events"] == events
    for context in (RequestContext(), RequestContext(key="other")):
        with pytest.raises(NotFound):
            opened.delete("coupons", "coupons", context=context)
    with pytest.raises(NotFound):
        stale.change(budget=3)
    again = make(opened, "coupons")
    assert again.names.roster.to_list() == ["coupons-ann", "coupons-ben"]
    assert stale.decide({"coupons-ann": "high"}).round == 2  # by its name
    assert replay(again).proven


@pytest.mark.parametrize("committed", [False, True], ids=["before", "after"])
def test_a_process_that_is_killed_deletes_all_or_nothing(address: str, committed: bool) -> None:
    with Desk(address) as desk:
        number = make(desk, "coupons").id
        before = count_rows(desk, number)
    process = PROCESSES.Process(target=delete_and_die, args=(address, "coupons", "k1", committed))
    process.start()
    process.join()
    assert process.exitcode == -9
    with Desk(address) as desk:  # which clears the files, if that is to be done
        assert count_rows(desk, number) == ({} if committed else before)
        assert [row.name for row in desk.store.programs()] == ([] if committed else ["coupons"])
        if committed:
            with pytest.raises(Repeated):
                desk.delete("coupons", "coupons", context=RequestContext(key="k1"))
        else:
            assert replay(desk.program("coupons")).proven


@pytest.mark.parametrize("killed", [False, True])
def test_the_file_has_no_name_of_a_deleted_program(tmp_path: Path, killed: bool) -> None:
    address = str(tmp_path / "store.db")
    with Desk(address) as desk:
        make(desk, "visits")
        make(desk, "coupons").change(budget=2)
        if not killed:
            desk.delete("coupons", "coupons")
    if killed:
        process = PROCESSES.Process(target=delete_and_die, args=(address, "coupons", "k1", True))
        process.start()
        process.join()
    with Desk(address) as desk:
        rows = desk.store.names(desk.program("visits").id).to_list()
        assert rows == ["visits-ann", "visits-ben"]
        for file in tmp_path.iterdir():
            assert b"coupons-ann" not in file.read_bytes()


def test_the_commands(shops: Call) -> None:
    assert shops("archive", "shops", "--dry-run").out == "shops would be archived.\n"
    assert shops("archive", "shops").out == "shops is archived.\n"
    assert shops("list", "--json").data["programs"][0]["archived"] is True
    refused = shops("change", "shops", "--budget", "3")
    assert (refused.code, "is archived" in refused.err) == (2, True)
    assert shops("restore", "shops").out == "shops is restored.\n"
    assert "repeat its name" in shops("delete", "shops", "--confirm", "shop").err
    assert shops("delete", "shops", "--confirm", "shops", "--dry-run").out.startswith("shops would be deleted, with ")
    assert shops("delete", "shops", "--confirm", "shops").out.startswith("shops is deleted, with ")
    assert shops("list", "--json").data["programs"] == []
