"""An event divided into parts comes together again, an agent is found in its chunk, the digest covers everything."""

import numpy as np
import pytest

from restive.desk.pack import Column, unpack
from restive.desk.parts import CHUNK, Part, assemble, divide, link, pick
from restive.desk.schema import WHOLE
from restive.errors import InputError

LUCK = np.random.default_rng(3)
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
    reward = np.where(LUCK.random(len(number)) < 0.5, np.nan, LUCK.random(len(number)))
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
    assert pick(part.body, 6) == {"number": 6, "done": True, "x": 1.5}
    assert [pick(part.body, agent) for agent in (3, 5, 7)] == [None, None, None]
    assert unpack(part.body)["done"].tolist() == [False, True]


def test_the_digest_covers_everything_and_not_the_order_of_reading() -> None:
    parts = [Part("", 0, b"a"), Part("", 1, b"b"), Part("list", WHOLE, b"c")]
    digest = link("before", "opened", 3, "now", "{}", parts)
    assert link("before", "opened", 3, "now", "{}", parts[::-1]) == digest
    others = [
        link("other", "opened", 3, "now", "{}", parts),
        link("before", "decided", 3, "now", "{}", parts),
        link("before", "opened", None, "now", "{}", parts),
        link("before", "opened", 3, "later", "{}", parts),
        link("before", "opened", 3, "now", "[]", parts),
        link("before", "opened", 3, "now", "{}", parts[:2]),
        link("before", "opened", 3, "now", "{}", [Part("", 0, b"ab"), Part("", 1, b""), parts[2]]),
        link("before", "opened", 3, "now", "{}", [Part("", 0, b"a"), Part("", 2, b"b"), parts[2]]),
        link("before", "opened", 3, "now", "{}", [*parts[:2], Part("lost", WHOLE, b"c")]),
    ]
    assert len({digest, *others}) == len(others) + 1
