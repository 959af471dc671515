"""Events: each kind has one meaning, and its form in the store is exact and chained."""

import json

import numpy as np
import pytest

from restive.desk import events
from restive.desk.codec import Column, unpack
from restive.desk.events import (
    CHUNK,
    KINDS,
    WHOLE,
    Cancelled,
    Change,
    Changed,
    Corrected,
    Created,
    Decided,
    DecisionInput,
    Erased,
    Event,
    Grouped,
    Joined,
    Left,
    Outcomes,
    Part,
    Reported,
    States,
    Undone,
    WarmStarted,
    Withdrawn,
    assemble,
    divide,
    interpret,
    link,
    pick,
)
from restive.errors import InputError

GENERATOR = np.random.default_rng(3)
BORDERS = {
    "no agents": ([], [WHOLE]),
    "one": ([0], [0]),
    "last of a chunk": ([CHUNK - 1], [0]),
    "first of a chunk": ([CHUNK], [1]),
    "both sides of a border": ([CHUNK - 1, CHUNK], [0, 1]),
    "far apart": ([3, 5 * CHUNK + 1, 900 * CHUNK], [0, 5, 900]),
    "three whole chunks": (list(range(3 * CHUNK)), [0, 1, 2]),
    "three chunks and one": (list(range(3 * CHUNK + 1)), [0, 1, 2, 3]),
}


def columns_over(number: Column) -> dict[str, Column]:
    reward = np.where(GENERATOR.random(len(number)) < 0.5, np.nan, GENERATOR.random(len(number)))
    return {"number": number, "reward": reward, "after": np.full(len(number), -1, np.int16)}


def assert_same(one: dict[str, Column], other: dict[str, Column]) -> None:
    assert list(one) == list(other)
    for name in one:
        assert one[name].dtype == other[name].dtype
        assert one[name].tobytes() == other[name].tobytes()


@pytest.mark.parametrize(("numbers", "chunks"), BORDERS.values(), ids=BORDERS)
def test_columns_come_together_again_whatever_chunks_they_have(numbers: list[int], chunks: list[int]) -> None:
    columns = columns_over(np.array(numbers, np.int64))
    parts = divide(columns, {})
    assert [part.chunk for part in parts] == chunks
    found, extra = assemble(parts[::-1])
    assert_same(found, columns)
    assert extra == {}


def test_extras_and_columns_without_agents_are_one_part_each() -> None:
    columns = {"a": np.arange(3), "b": np.zeros(20_000)}
    extra = {"list": {"number": np.array([9, 1])}, "empty": {}}
    parts = divide(columns, extra)
    assert [(part.name, part.chunk) for part in parts] == [("", WHOLE), ("empty", WHOLE), ("list", WHOLE)]
    found, others = assemble(parts)
    assert_same(found, columns)
    assert_same(others["list"], {"number": np.array([9, 1])})
    assert others["empty"] == {}
    assert divide({}, {}) == []
    assert assemble([]) == ({}, {})
    with pytest.raises(InputError, match="needs a name"):
        divide({}, {"": columns})


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"number": np.array([2, 1])}, "ascending"),
        ({"number": np.array([1, 1])}, "ascending"),
        ({"number": np.array([-1, 1])}, "from 0 on"),
        ({"number": np.array([0.5])}, "agent numbers"),
        ({"number": np.arange(3), "state": np.arange(2)}, "'state' of an event has another length"),
    ],
)
def test_columns_that_fit_no_agents_are_refused(columns: dict[str, Column], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        divide(columns, {})


def test_an_agent_is_picked_from_its_chunk_or_is_not_there() -> None:
    (part,) = divide({"number": np.array([4, 6]), "done": np.array([False, True]), "x": np.array([0.5, 1.5])}, {})
    found = pick(part.body, 6) or {}
    assert {name: column.tolist() for name, column in found.items()} == {"number": [6], "done": [True], "x": [1.5]}
    assert [pick(part.body, agent) for agent in (3, 5, 7)] == [None, None, None]
    assert unpack(part.body)["done"].tolist() == [False, True]


def test_the_digest_covers_everything_and_not_the_order_of_reading() -> None:
    parts = [Part("", 0, b"a"), Part("", 1, b"b"), Part("list", WHOLE, b"c")]
    digest = link("before", "decided", 3, "now", "{}", parts)
    assert link("before", "decided", 3, "now", "{}", parts[::-1]) == digest
    others = [
        link("other", "decided", 3, "now", "{}", parts),
        link("before", "outcomes", 3, "now", "{}", parts),
        link("before", "decided", None, "now", "{}", parts),
        link("before", "decided", 3, "later", "{}", parts),
        link("before", "decided", 3, "now", "[]", parts),
        link("before", "decided", 3, "now", "{}", parts[:2]),
        link("before", "decided", 3, "now", "{}", [Part("", 0, b"ab"), Part("", 1, b""), parts[2]]),
        link("before", "decided", 3, "now", "{}", [Part("", 0, b"a"), Part("", 2, b"b"), parts[2]]),
        link("before", "decided", 3, "now", "{}", [*parts[:2], Part("lost", WHOLE, b"c")]),
    ]
    assert len({digest, *others}) == len(others) + 1


NUMBER = np.array([2, 5])
STATES = States(NUMBER, np.array([0, 1]), np.array([False, True]), np.array([True, False]))
OUTCOMES = Outcomes(
    NUMBER, np.array([True, False]), np.array([1.0, np.nan]), np.array([1, -1]), np.array([False, True]),
    np.array([True, True]), np.array([True, False]),
)  # fmt: skip
CHOICE = {"chosen": np.array([True, False]), "probability": np.array([0.5, 0.25])}
CHANGES: list[Change] = [
    Created({"budget": 2}),
    Changed({"budget": 3}),
    WarmStarted(
        NUMBER, np.arange(16).reshape(2, 2, 2, 2), np.zeros((2, 0)), {"value": [0.0, 1.0], "power": 0.5, "rounds": 8}
    ),
    Joined(NUMBER, np.array([-1, 0]), ["north"], np.zeros((2, 0))),
    Joined(NUMBER, np.array([-1, 0]), [], np.array([[40.5, 0.0, 1.0], [np.nan, 1.0, 0.0]])),
    Grouped(NUMBER, np.array([0, 1]), []),
    Left(NUMBER),
    Erased(NUMBER, {1: 2, 3: 0}),
    Decided(DecisionInput(STATES, 2, NUMBER[:1], NUMBER[1:], "abc"), {"policy": "egt"}, CHOICE, {"agent": NUMBER[:1]}),
    Reported(OUTCOMES),
    Reported(OUTCOMES, states_of=5),
    Corrected(STATES),
    Corrected(OUTCOMES),
    Cancelled(),
    Withdrawn(NUMBER),
    Undone(4, 7),
]


def as_event(change: Change) -> Event:
    """The event as it comes back from the store."""
    header, columns, extra = change.record()
    columns, extra = assemble(divide(columns, extra))
    return Event(3, change.kind, 4, "now", json.loads(json.dumps(header)), columns, extra, "")


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.kind)
def test_an_event_comes_back_with_its_meaning(change: Change) -> None:
    found = interpret(as_event(change))
    assert type(found) is type(change)
    assert repr(found) == repr(change)


def test_every_kind_of_event_is_tried_here_and_described() -> None:
    assert {change.kind for change in CHANGES} == set(KINDS)
    described = (events.__doc__ or "").split()
    assert set(KINDS) <= set(described)


def test_a_correction_replaces_the_rows_of_its_agents_and_leaves_the_event_as_it_was() -> None:
    event = as_event(Reported(OUTCOMES))
    found = interpret(event)
    assert isinstance(found, Reported)
    right = Outcomes(*(np.array([value]) for value in (2, False, 0.5, 0, True, True, False)))
    found.outcomes.correct(right)
    assert (found.outcomes.done.tolist(), found.outcomes.after.tolist()) == ([False, False], [0, -1])
    found.outcomes.correct(right._replace(done=np.array([True]), reward=np.array([np.nan]), after=np.array([-1])))
    assert (found.outcomes.done.tolist(), found.outcomes.reward.tolist()[0]) == ([True, False], 0.5)
    assert repr(interpret(event)) == repr(Reported(OUTCOMES))
