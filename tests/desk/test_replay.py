"""Replay: a log that is whole is proven, and whatever was changed in it comes to light."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa

from desk.stories import STEADY, make, record, write
from restive.contract import Draws
from restive.desk import Desk
from restive.desk.cache import SLOT
from restive.desk.database import events, parts
from restive.desk.events import divide, link
from restive.desk.program import Program
from restive.desk.replay import replay
from restive.desk.store import Event
from restive.errors import InputError
from restive.policies.egt import Egt


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with Desk(tmp_path / "desk.db") as desk:
        yield desk


Change = Callable[[Event], Event]


def forge(program: Program, number: int, change: Change, chain: bool) -> None:
    """Change an event in the store behind everybody's back; with `chain` all digests after it fit again."""
    log = list(program.log())
    log[number] = change(log[number])
    headers = {}
    with program.store._engine.begin() as connection:
        for event in log:
            mine = sa.and_(events.c.program == program.id, events.c.number == event.number)
            headers[event.number] = connection.execute(sa.select(events.c.header).where(mine)).scalar_one()
        headers[number] = json.dumps(log[number].header)
        pieces = [divide(event.columns, event.extra) for event in log]
        here = sa.and_(parts.c.program == program.id, parts.c.event == number)
        connection.execute(parts.delete().where(here))
        for piece in pieces[number]:
            connection.execute(parts.insert(), {"program": program.id, "event": number, **piece._asdict()})
        previous = ""
        for event, some in zip(log, pieces, strict=True):
            previous = link(previous, event.kind, event.round, event.at, headers[event.number], some)
            reported = {"header": headers[event.number]} | ({"digest": previous} if chain else {})
            mine = sa.and_(events.c.program == program.id, events.c.number == event.number)
            connection.execute(events.update().where(mine).values(reported))


def find(program: Program, kind: str, round_: int) -> int:
    return next(event.number for event in program.log() if event.kind == kind and event.round == round_)


def with_column(name: str, place: int, value: Any) -> Change:
    def change(event: Event) -> Event:
        column = event.columns[name].copy()
        column[place] = value if value is not None else not column[place]
        return event._replace(columns={**event.columns, name: column})

    return change


def with_listed(name: str, place: int, value: float) -> Change:
    def change(event: Event) -> Event:
        column = event.extra["list"][name].copy()
        column[place] = value
        return event._replace(extra={"list": {**event.extra["list"], name: column}})

    return change


def with_header(name: str, value: object) -> Change:
    return lambda event: event._replace(header={**event.header, name: value})


DECISIONS = {
    "another person": (with_column("chosen", 0, None), "Round 2 differs in chosen."),
    "a probability": (
        with_column("probability", 1, np.nextafter(0.123, 1)),
        "Round 2 differs in probability.",
    ),
    "a reason": (with_column("exclusion", 2, 3), "Round 2 differs in exclusion."),
    "a priority": (with_listed("priority", 0, 7.0), "Round 2 differs in priority."),
    "an order": (with_listed("agent", 0, 8), "Round 2 differs in agent."),
    "a rule": (with_header("displaced", {"never list": 5}), "Round 2 differs in displaced."),
    "what followed": (with_header("better", [[0, 0], [9, 0]]), "Round 2 differs in better."),
    "a policy": (with_header("policy", "wiql"), "Round 2 differs in policy."),
    "something more": (with_header("note", 1), "Round 2 differs in note."),
    "the shadow": (with_column("shadow_chosen", 0, None), "Round 2 differs in shadow_chosen."),
}


@pytest.fixture
def program(desk: Desk) -> Program:
    made = make(desk, policy="egt", shadow="wiql")
    record(made, write(rounds=3))
    return made


@pytest.mark.parametrize("what", DECISIONS)
def test_a_forged_decision_comes_out_otherwise(program: Program, desk: Desk, what: str) -> None:
    change, sentence = DECISIONS[what]
    forge(program, find(program, "decided", 2), change, chain=True)
    found = replay(desk.program("one"))
    assert not found.proven
    assert found.differing == [sentence]
    assert (found.rounds, found.same) == (3, 2)


@pytest.mark.parametrize("what", ["another person", "a priority", "a rule"])
def test_a_forgery_that_leaves_the_digests_is_named_by_its_event(program: Program, desk: Desk, what: str) -> None:
    number = find(program, "decided", 2)
    forge(program, number, DECISIONS[what][0], chain=False)
    with pytest.raises(InputError, match=f"Event {number} in the store .* is not as it was written"):
        replay(desk.program("one"))


def test_which_version_decided_makes_no_difference(program: Program, desk: Desk) -> None:
    forge(program, find(program, "decided", 2), with_header("version", "0.0.1"), chain=True)
    assert replay(desk.program("one")).proven


def test_a_forged_outcome_changes_the_decisions_after_it(program: Program, desk: Desk) -> None:
    forge(program, find(program, "outcomes", 1), with_column("done", 0, None), chain=True)
    found = replay(desk.program("one"))
    assert not found.proven
    assert found.differing[0].startswith("Round 2 differs in")


def test_a_digest_that_was_changed_is_noticed(program: Program, desk: Desk) -> None:
    number = find(program, "decided", 2)
    with program.store._engine.begin() as connection:
        mine = sa.and_(events.c.program == program.id, events.c.number == number)
        connection.execute(events.update().where(mine).values(digest="0" * 64))
    with pytest.raises(InputError, match=f"Event {number} in the store"):
        replay(desk.program("one"))


def test_a_forged_snapshot_does_not_agree_with_the_log(program: Program, desk: Desk) -> None:
    program.cache.save(now=True)
    assert replay(desk.program("one")).proven
    projection = desk.program("one").projection
    projection.policy_states["policy"].belief.total[0, 0] += 1e-9
    with program.store.writing(program.id) as writer:
        writer.put_snapshot(SLOT, projection.dump())
    found = replay(desk.program("one"))
    assert (found.differing, found.same, found.rounds) == ([], 3, 3)
    assert found.belief != found.believed
    assert not found.proven


def test_a_policy_that_ranks_otherwise_now_is_noticed(
    program: Program, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Egt.rank

    def rank(self: Egt, belief: Any, state: Any, draws: Draws) -> Any:
        ranking = plain(self, belief, state, draws)
        return ranking._replace(priority=np.nextafter(ranking.priority, np.inf))

    monkeypatch.setattr(Egt, "rank", rank)
    found = replay(desk.program("one"))
    assert not found.proven
    assert len(found.differing) == 3
    assert all("priority" in sentence for sentence in found.differing)


@pytest.mark.parametrize("policy", STEADY)
def test_a_story_with_all_that_can_happen_is_proven(desk: Desk, policy: str) -> None:
    rules: dict[str, Any] = {"control": 0.2, "cool_down": 2, "shares": {"north": 0.5}, "keep": 1}
    program, story = make(desk, policy=policy, shadow="lagrange", budget=3, **rules), write(agents=12, rounds=6)
    grouped = {name: (state, "north" if name < "a04" else "south") for name, state in story[0].states.items()}
    free = program.decide(grouped, dry_run=True).chosen
    program.decide(grouped, must=free[-1:], never=free[:1])
    program.learn(story[0].rows[:3])
    program.decide(story[1].states, budget=1)
    program.decide({name: state for name, state in story[2].states.items() if name > "a02"})
    program.correct_states({"a05": 1 - story[1].states["a05"]}, round=2)
    program.learn([row | {"round": 2} for row in story[1].rows] + [row | {"round": 1} for row in story[0].rows[3:]])
    wrong = story[0].rows[0]
    program.learn([wrong | {"next_state": 1 - wrong["next_state"]}], round=1, correct=True)
    program.leave(["a07"])
    program.erase(["a08"])
    program.change(budget=4, cool_down=0, shares={})
    program.decide({"new": (1, "east"), "a01": (0, "east")})
    program.cache.save(now=True)
    found = replay(desk.program("one"))
    assert (found.proven, found.rounds, found.same, found.differing) == (True, 4, 4, [])
    assert found.events == program.store.length(program.id)
    assert found.as_json()["proven"] is True
    assert found.end == found.as_json()["end"] == list(program.log())[-1].digest


def test_the_end_of_the_chain_shows_that_events_were_cut_off(program: Program, desk: Desk) -> None:
    whole = replay(program)
    last = whole.events - 1
    assert whole.end == program.store.event(program.id, last).digest
    with program.store._engine.begin() as connection:
        connection.execute(parts.delete().where(parts.c.program == program.id, parts.c.event == last))
        connection.execute(events.delete().where(events.c.program == program.id, events.c.number == last))
    less = replay(desk.program("one"))
    assert less.proven  # what is left is whole in itself
    assert less.end == program.store.event(program.id, last - 1).digest != whole.end


def test_progress_is_reported_event_by_event(program: Program) -> None:
    reported: list[tuple[int, int]] = []
    replay(program, lambda done, total: reported.append((done, total)))
    length = program.store.length(program.id)
    assert reported == [(done, length) for done in range(1, length + 1)]


def test_a_program_without_rounds_is_proven(desk: Desk) -> None:
    found = replay(make(desk))
    assert (found.proven, found.events, found.rounds) == (True, 1, 0)


def test_what_comes_in_meanwhile_is_left_for_the_next_replay(program: Program, desk: Desk) -> None:
    other, length = desk.program("one"), program.store.length(program.id)
    assert other.cache._projection is None

    def interfere(done: int, total: int) -> None:
        if done == 3:
            program.decide({"a00": 1})

    found = replay(other, interfere)
    assert found.events == length
    assert found.proven
