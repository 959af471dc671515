"""Snapshots of a projection: the same to the last bit for every learner, and no use of what cannot be read."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desk.stories import LEARNERS, make, record, write
from restive.desk import Desk
from restive.desk.codec import pack, unpack
from restive.desk.program import Program
from restive.desk.projection import Projection
from restive.desk.replay import digest
from restive.desk.snapshots import FORMAT, keep, read_kept
from restive.errors import InputError


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with Desk(tmp_path / "desk.db") as desk:
        yield desk


def projection_from(program: Program, content: bytes | None) -> Projection:
    """The whole log folded from a snapshot, or from nothing."""
    projection = program.cache.fresh_projection(program.store.length(program.id))
    if content is not None:
        projection.restore(content)
    for event in program.store.events(program.id, first=projection.length):
        projection.apply(event)
    return projection


@pytest.mark.parametrize("policy", LEARNERS)
def test_a_projection_from_a_snapshot_is_that_of_the_whole_log_bit_for_bit(desk: Desk, policy: str) -> None:
    program, story = make(desk, policy=policy, shadow="lagrange", control=0.2, cool_down=2), write(rounds=6)
    record(program, story[:3])
    content = program.projection.dump()
    record(program, story[3:], first=3)
    restored, scratch = projection_from(program, content), projection_from(program, None)
    assert digest(restored) == digest(scratch) == digest(program.projection)
    assert restored.dump() == scratch.dump()


numbers = st.sampled_from(["<f8", "<i8", "?", "|u1", "<i2"])
shapes = st.lists(st.integers(0, 4), max_size=4).map(tuple)


@settings(derandomize=True, max_examples=40, deadline=None)
@given(
    st.dictionaries(st.text(min_size=1, max_size=5).filter(lambda name: name != "header"), st.tuples(numbers, shapes))
)
def test_arrays_of_any_shape_and_type_come_back(wanted: dict[str, tuple[str, tuple[int, ...]]]) -> None:
    rng = np.random.default_rng(1)
    arrays = {name: (rng.normal(size=shape) * 9).astype(kind) for name, (kind, shape) in wanted.items()}
    about, found = read_kept(keep({"text": "é", "number": 0.1}, arrays))
    assert about == {"text": "é", "number": 0.1}
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        assert found[name].tobytes() == array.tobytes()


def as_header(record: object) -> bytes:
    return pack({"header": np.frombuffer(json.dumps(record).encode(), np.uint8)})


OTHERS = {
    "another format": (
        as_header({"format": "restive-projection-0", "shapes": {}, "about": {}}),
        "a snapshot of format 'restive-projection-0'; this version reads",
    ),
    "no header": (pack({"moves": np.arange(3)}), "not a snapshot of a projection"),
    "no JSON": (pack({"header": np.arange(3, dtype=np.uint8)}), "not a snapshot of a projection"),
    "no format": (as_header({"about": {}}), "not a snapshot of a projection"),
    "a list": (as_header([1]), "not a snapshot of a projection"),
    "no shapes": (as_header({"format": FORMAT}), "not a snapshot of a projection"),
    "no pack": (b"restive", "damaged|not packed|packed"),
    "nothing": (b"", "damaged|not packed|packed"),
}


@pytest.mark.parametrize("other", OTHERS)
def test_what_is_no_snapshot_is_refused(other: str) -> None:
    content, sentence = OTHERS[other]
    with pytest.raises(InputError, match=sentence):
        read_kept(content)


def test_a_shape_that_does_not_fit_is_refused() -> None:
    columns = unpack(keep({}, {"moves": np.eye(2)}))
    with pytest.raises(InputError, match="not a snapshot of a projection"):
        read_kept(pack({**columns, "moves/0": np.arange(3.0)}))


def test_a_snapshot_with_something_missing_is_refused(desk: Desk) -> None:
    program = make(desk, shadow="wiql")
    record(program, write(rounds=2))
    about, arrays = read_kept(program.projection.dump())
    for name in about:
        less = {key: value for key, value in about.items() if key != name}
        with pytest.raises(InputError, match="a snapshot that this version cannot read"):
            projection_from(program, keep(less, arrays))
    for name in arrays:
        with pytest.raises(InputError, match="a snapshot that this version cannot read"):
            projection_from(program, keep(about, {key: value for key, value in arrays.items() if key != name}))
    with pytest.raises(InputError, match="a snapshot that this version cannot read"):
        projection_from(program, keep(about, arrays | {"agents.mood": np.zeros(9)}))


def test_a_snapshot_of_other_policies_is_refused(desk: Desk) -> None:
    one, two, three = make(desk, "1"), make(desk, "2", policy="egt:eta=2.0"), make(desk, "3", shadow="wiql")
    for program in (one, two, three):
        record(program, write(rounds=2))
    for program, other in ((one, two), (two, one), (one, three)):
        about, arrays = read_kept(other.projection.dump())
        mine, _ = read_kept(program.projection.dump())
        with pytest.raises(InputError, match="a snapshot"):
            projection_from(program, keep(mine | {"policy_states": about["policy_states"]}, arrays))
