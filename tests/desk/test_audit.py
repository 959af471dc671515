"""Every transaction has its context, and a context that is asked for twice by one key is done once."""

import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from desk.stories import make
from restive.desk import Desk, Program
from restive.desk.audit import FORGOTTEN, KEYED, KeyTaken, Repeated, RequestContext
from restive.desk.database import audit_log
from restive.errors import Conflict, InputError

FOUR = {"ann": "bad", "ben": "good", "cem": "bad", "dee": "bad"}


@pytest.fixture
def program(address: str) -> Iterator[Program]:
    with Desk(address) as desk:
        yield make(desk)


def came(*agents: str) -> list[dict[str, str]]:
    return [{"agent": agent, "next_state": "good"} for agent in agents]


def verbs(program: Program) -> list[str]:
    return [context.verb for context in reversed(program.store.audit_log(program.id))]


def live(program: Program, context: Callable[[str], RequestContext]) -> list[dict[str, Any]]:
    """Every verb once; with a key that came before, what each of them answered then."""
    calls: list[Callable[[], object]] = [
        lambda: program.decide(FOUR, context=context("decide")),
        lambda: program.learn(came(*FOUR), context=context("learn")),
        lambda: program.correct_states({"ann": "good"}, 1, context=context("correct")),
        lambda: program.decide(FOUR, context=context("decide again")),
        lambda: program.cancel(2, context=context("cancel")),
        lambda: program.leave(["cem"], context=context("leave")),
        lambda: program.change(context=context("change"), budget=3),
        lambda: program.erase(["dee"], context=context("erase")),
    ]
    answers = []
    for call in calls:
        try:
            call()
        except Repeated as repeated:
            answers.append(repeated.answer)
    return answers


def test_every_verb_leaves_one_context_that_says_who_and_what(program: Program) -> None:
    live(program, lambda _: RequestContext(by="token 7 ann"))
    found = program.store.audit_log(program.id)
    verbs = ["created", "decided", "learned", "corrected", "decided", "cancelled", "left", "changed", "erased"]
    assert [context.verb for context in reversed(found)] == verbs
    assert {context.by for context in found[:-1]} == {"token 7 ann"}
    assert found[-1].by == "library"
    assert [context.round for context in reversed(found)] == [None, 1, 1, 1, 2, 2, None, None, None]
    assert [context.at for context in reversed(found)] == sorted(context.at for context in found)
    assert {context.program for context in found} == {"one"}


def test_a_key_that_comes_again_brings_the_first_answer_and_records_nothing(program: Program) -> None:
    assert live(program, lambda verb: RequestContext(key=verb, asked=f"{KEYED}same")) == []
    events, reported = program.store.length(program.id), verbs(program)
    answers = live(program, lambda verb: RequestContext(key=verb, asked=f"{KEYED}same"))
    assert [answer.get("round") for answer in answers] == [1, 1, 1, 2, 2, None, None, None]
    assert answers[0]["listed"] == 2
    assert (answers[1]["new"], answers[1]["rounds"]) == (4, [1])
    assert (answers[2]["corrected"], answers[5]["count"], answers[6]["config"]["budget"]) == (1, 1, 3)
    assert (program.store.length(program.id), verbs(program)) == (events, reported)


def test_a_key_that_comes_again_after_a_restart_brings_the_same_list(address: str) -> None:
    with Desk(address) as desk:
        first = make(desk).decide(FOUR, context=RequestContext(key="monday"))
    with Desk(address) as desk:
        program = desk.program("one")
        with pytest.raises(Repeated) as repeated:
            program.decide(FOUR, context=RequestContext(key="monday"))
        again = program.recommendation(repeated.value.answer["round"], repeated.value.answer["notes"])
        assert again.as_json() == first.as_json()


def test_a_key_is_refused_for_another_request_and_free_in_another_program(address: str) -> None:
    with Desk(address) as desk:
        one, two = make(desk), make(desk, "two")
        one.decide(FOUR, context=RequestContext(key="monday", asked="a"))
        with pytest.raises(KeyTaken, match="key was used for another request"):
            one.learn(came("ann"), context=RequestContext(key="monday", asked="b"))
        two.decide(FOUR, context=RequestContext(key="monday", asked="b"))
        assert len(one.rounds) == len(two.rounds) == 1


def test_one_key_at_once_from_many_threads_decides_once(address: str) -> None:
    with Desk(address) as desk:
        make(desk)

        def decide(_: int) -> int:
            try:
                return desk.program("one").decide(FOUR, context=RequestContext(key="monday")).round
            except Repeated as repeated:
                return int(repeated.answer["round"])

        with ThreadPoolExecutor(4) as threads:
            assert list(threads.map(decide, range(8))) == [1] * 8
        assert len(desk.program("one").rounds) == 1


def test_a_program_is_made_once_by_one_key(address: str) -> None:
    with Desk(address) as desk:
        made = make(desk, context=RequestContext(key="k", asked="a"))
        with pytest.raises(Repeated) as repeated:
            make(desk, context=RequestContext(key="k", asked="a"))
        assert repeated.value.answer["config"]["states"] == list(made.config.states)
        with pytest.raises(KeyTaken):
            make(desk, context=RequestContext(key="k", asked="b"))
        with pytest.raises(Conflict, match="already has a program 'one'"):
            make(desk, context=RequestContext(key="other"))


def test_what_is_refused_or_tried_leaves_no_context_and_its_key_free(program: Program) -> None:
    program.decide(FOUR, dry_run=True, context=RequestContext(key="k", asked="try"))
    with pytest.raises(InputError):
        program.decide({"ann": "nowhere"}, context=RequestContext(key="k", asked="wrong"))
    assert verbs(program) == ["created"]
    assert program.decide(FOUR, context=RequestContext(key="k", asked="right")).round == 1


def test_erasing_takes_the_name_out_of_the_answers_kept(tmp_path: Path) -> None:
    with Desk(tmp_path / "a.db") as desk:
        program = make(desk)
        program.decide(FOUR)
        rows = [*came(*FOUR), {"agent": "zoe-nobody-knows", "next_state": "good"}]
        program.decide(FOUR, never=["zoe-on-never"], again=True, context=RequestContext(key="k"))
        assert "zoe-on-never" in str(program.store.audit_log(program.id)[0].answer)
        with pytest.raises(InputError):
            program.learn(rows)
        program.erase(["ann"])
        with pytest.raises(Repeated) as repeated:
            program.decide(FOUR, never=["zoe-on-never"], again=True, context=RequestContext(key="k"))
        assert repeated.value.answer["notes"] == []
    for file in tmp_path.iterdir():
        assert b"zoe" not in file.read_bytes()
        assert b"ann" not in file.read_bytes()


def test_erasing_takes_the_digests_of_requests_away_and_the_keys_stay(program: Program) -> None:
    sealed = f"{KEYED}of ben"
    program.decide(FOUR, context=RequestContext(key="k", asked="digest of what names ann"))
    program.leave(["ben"], context=RequestContext(key="l", asked=sealed))
    program.erase(["ann"], context=RequestContext(key="e", asked="digest of ann"))
    asked = program.store.execute(sa.select(audit_log.c.asked).where(audit_log.c.program == program.id))
    assert {row.asked for row in asked} == {"", FORGOTTEN, sealed}
    with pytest.raises(Repeated):
        program.leave(["ben"], context=RequestContext(key="l", asked=sealed))
    for key in "ke":
        with pytest.raises(KeyTaken, match="used before names were erased; use a new one"):
            program.erase(["cem"], context=RequestContext(key=key, asked="digest"))
    assert program.names.search("cem").size == 1


def test_a_key_of_one_verb_answers_no_other(program: Program) -> None:
    program.decide(FOUR, context=RequestContext(key="k"))
    for call in (program.leave, program.erase):
        with pytest.raises(KeyTaken, match="used for another request"):
            call(["ann"], context=RequestContext(key="k"))
    assert program.names.search("ann").size == 1


def test_a_store_with_pseudonyms_keeps_no_remarks_that_name_people(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RESTIVE_KEYS", str(tmp_path / "keys"))
    with Desk(tmp_path / "a.db") as desk:
        program = make(desk, pseudonyms=True)
        recommendation = program.decide(FOUR, never=["zoe-on-never"], context=RequestContext(key="k"))
        assert "zoe-on-never" in " ".join(recommendation.notes)
    assert b"zoe" not in (tmp_path / "a.db").read_bytes()


def test_audit_log_are_read_in_pages_the_newest_first(program: Program) -> None:
    live(program, lambda _: RequestContext())
    whole = program.store.audit_log(program.id)
    first = program.store.audit_log(program.id, limit=4)
    rest = program.store.audit_log(program.id, before=first[-1].number)
    assert [*first, *rest] == whole
    assert program.store.audit_log(None) == whole


def test_a_table_that_is_refused_does_not_make_the_desk_read_the_log_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Desk(tmp_path / "a.db") as desk:
        program = make(desk)
        program.decide(FOUR)
        projection = program.projection
        with pytest.raises(InputError):
            program.decide({"Ann": "bad"})
        with pytest.raises(InputError):
            program.learn(came("nobody"))
        assert program.projection is projection
        program.learn(came(*FOUR), dry_run=True)
        assert program.projection is not projection


@pytest.mark.parametrize("key", ["", "x" * 201, "\n", "é", "a\x00"])
def test_a_key_that_cannot_stand_in_a_header_is_refused(key: str) -> None:
    with pytest.raises(InputError, match=r"idempotency key is .* printable ASCII characters"):
        RequestContext(key=key)


def test_a_key_stands_once_in_a_program_whatever_the_code_does(tmp_path: Path) -> None:
    with Desk(tmp_path / "a.db") as desk:
        make(desk).decide(FOUR, context=RequestContext(key="k"))
    connection = sqlite3.connect(tmp_path / "a.db")
    with connection, pytest.raises(sqlite3.IntegrityError):
        connection.execute(
            "INSERT INTO audit_log (program, at, by, verb, key, asked, answer) VALUES (1,'','','','k','','')"
        )
    connection.close()
