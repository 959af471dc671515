"""Packed columns and snapshots come back bit for bit, are as small as their form allows, and refuse every damage."""

import json
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from desk.stories import LEARNERS, make, record, write
from restive.desk import Desk
from restive.desk import codec as module
from restive.desk.codec import (
    DTYPES,
    MAGIC,
    MAX_PALETTE,
    SLOTS,
    SNAPSHOT_FORMAT,
    Column,
    find_codes,
    pack,
    pack_snapshot,
    unpack,
    unpack_snapshot,
)
from restive.desk.program import Program
from restive.desk.projection import Projection
from restive.desk.replay import digest
from restive.errors import InputError
from restive.kernels.rng import mix
from restive.types import Bytes, Keys

N = 100_000
RNG = np.random.default_rng(7)


def assert_same(columns: dict[str, Column]) -> None:
    back = unpack(pack(columns))
    assert list(back) == list(columns)
    for name, column in columns.items():
        assert back[name].dtype == column.dtype
        assert back[name].tobytes() == column.tobytes()
        assert back[name].flags.writeable


def forms_in(content: bytes) -> list[tuple[int, int]]:
    """The form of each column, and whether it is compressed."""
    forms, place = [], module.TOP.size
    while place < len(content):
        title, _, form, small, _, _, kept = module.ENTRY.unpack_from(content, place)
        forms.append((form, small))
        place += module.ENTRY.size + title + kept
    return forms


def any_column() -> st.SearchStrategy[Column]:
    few = st.sampled_from(DTYPES).flatmap(lambda dtype: arrays.arrays(dtype, st.integers(0, 40)))
    return few.flatmap(
        lambda column: st.sampled_from([column, np.sort(column), np.repeat(column, 30), column[::-1], column[::2]])
    )


@settings(deadline=None, max_examples=150)
@given(st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=20), any_column(), max_size=4))
def test_any_columns_come_back_bit_for_bit(columns: dict[str, Column]) -> None:
    assert_same(columns)


def test_special_floats_come_back_bit_for_bit() -> None:
    quiet = np.array([0x7FF8000000000001, 0xFFF8000000000000, 0x7FF0000000000001], np.uint64).view(np.float64)
    special = np.array([np.nan, -0.0, 0.0, np.inf, -np.inf, 5e-324, 1.7976931348623157e308])
    assert_same({"few": np.concatenate([special, quiet]), "many": np.resize(np.concatenate([special, quiet]), 5000)})


@pytest.mark.parametrize("dtype", DTYPES[1:-1])
def test_whole_numbers_at_the_ends_of_their_width_come_back(dtype: np.dtype[np.integer]) -> None:
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    ends = np.array([low, low + 1, 0, high - 1, high], dtype)
    assert_same({"up": ends, "down": ends[::-1], "wide": np.resize(ends[[0, -1]], 50), "random": RNG.permutation(ends)})
    assert_same({"all": RNG.integers(low, high, 3000, dtype, endpoint=True)})


@pytest.mark.parametrize("values", [255, 256, 257])
def test_palette_holds_up_to_256_values_wherever_they_first_appear(values: int) -> None:
    column = np.zeros(N)
    column[-values:] = RNG.random(values)
    column[-1] = 0.0
    assert_same({"late": column, "mixed": RNG.permutation(column)})
    assert forms_in(pack({"late": column})) == [(module.PALETTE if values <= 256 else module.RAW, 1)]


@pytest.mark.parametrize(
    ("column", "most"),
    [
        (np.arange(5, N), 80),
        (np.full(N, 3, np.int16), 80),
        (np.full(N, np.nan), 80),
        (RNG.random(N) < 0.5, N // 8 + 80),
        (np.flatnonzero(RNG.random(2 * N) < 0.5), N),
        (RNG.choice([0.1, 0.2, 0.9], N), N),
        (RNG.integers(0, 4, N).astype(np.int16), N),
        (10**12 + RNG.permutation(N), 4 * N + 80),
        (RNG.random(N), 8 * N + 80),
    ],
)
def test_columns_are_as_small_as_their_kind_allows(column: Column, most: int) -> None:
    assert len(pack({"column": column})) <= most
    assert_same({"column": column})


def test_big_endian_columns_come_back_with_the_same_values() -> None:
    back = unpack(pack({"number": np.arange(4, dtype=">i4")}))["number"]
    assert back.dtype == np.int32
    assert back.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "column", [np.zeros((2, 2)), np.array(3), np.array(["a"]), np.array([None]), np.zeros(3, np.complex128)]
)
def test_what_is_no_column_is_refused(column: Column) -> None:
    with pytest.raises(InputError, match=r"Column 'x' is .*; a column has one dimension"):
        pack({"x": column})
    with pytest.raises(InputError, match="its name has at most 255 bytes"):
        pack({"x" * 256: np.zeros(1)})


def sample() -> bytes:
    """One column of every form."""
    return pack(
        {
            "raw": np.array([0.5, np.nan]),
            "bits": np.ones(9, bool),
            "range": np.arange(20),
            "steps": np.array([1, 2, 4, 900]),
            "palette": np.resize([0.5, 0.25], 40),
            "constant": np.full(40, 0.5),
            "offsets": np.array([300, 100, 250]),
            "squeezed": np.resize([1, 5, 4, 2, 3], 300).astype(np.int8),
        }
    )


def test_sample_has_every_form() -> None:
    forms = forms_in(sample())
    assert {form for form, _ in forms} == set(range(6))
    assert {small for _, small in forms} == {0, 1}


def test_every_damaged_byte_and_every_cut_is_refused() -> None:
    content = sample()
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 0x55
        with pytest.raises(InputError):
            unpack(bytes(damaged))
        with pytest.raises(InputError):
            unpack(content[:place])
    with pytest.raises(InputError, match="checksum"):
        unpack(content + b"x")
    with pytest.raises(InputError, match="magic word"):
        unpack(content.replace(MAGIC, b"RSTVPK2\n"))


def test_forged_bytes_with_a_right_checksum_are_refused_or_read_but_never_crash(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_LENGTH", 1000)
    content, refused = sample(), 0
    for place in range(module.TOP.size - 2, len(content)):
        for change in (0x01, 0x02, 0x80, 0xFF):
            forged = bytearray(content)
            forged[place] ^= change
            forged[8:12] = struct.pack("<I", zlib.crc32(forged[12:]))
            try:
                unpack(bytes(forged))
            except InputError:
                refused += 1
    assert refused > len(content)


def test_a_body_that_expands_beyond_its_size_is_refused() -> None:
    title, bomb = b"x", zlib.compress(bytes(10_000_000), 9)
    entry = module.ENTRY.pack(1, 5, module.RAW, 1, 100, 100, len(bomb)) + title + bomb
    rest = struct.pack("<H", 1) + entry
    with pytest.raises(InputError, match="another size"):
        unpack(MAGIC + struct.pack("<I", zlib.crc32(rest)) + rest)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with Desk(tmp_path / "desk.db") as desk:
        yield desk


def projection_from(program: Program, content: bytes | None) -> Projection:
    """The projection of the whole log from a snapshot, or from nothing."""
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
    about, found = unpack_snapshot(pack_snapshot({"text": "é", "number": 0.1}, arrays))
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
        "^The snapshot has format 'restive-projection-0'; this version reads",
    ),
    "no header": (pack({"moves": np.arange(3)}), "not a snapshot of a projection"),
    "no JSON": (pack({"header": np.arange(3, dtype=np.uint8)}), "not a snapshot of a projection"),
    "no format": (as_header({"about": {}}), "not a snapshot of a projection"),
    "a list": (as_header([1]), "not a snapshot of a projection"),
    "no shapes": (as_header({"format": SNAPSHOT_FORMAT}), "not a snapshot of a projection"),
    "no pack": (b"restive", "damaged|not packed|packed"),
    "nothing": (b"", "damaged|not packed|packed"),
}


@pytest.mark.parametrize("other", OTHERS)
def test_what_is_no_snapshot_is_refused(other: str) -> None:
    content, sentence = OTHERS[other]
    with pytest.raises(InputError, match=sentence):
        unpack_snapshot(content)


def test_a_shape_that_does_not_fit_is_refused() -> None:
    columns = unpack(pack_snapshot({}, {"moves": np.eye(2)}))
    with pytest.raises(InputError, match="not a snapshot of a projection"):
        unpack_snapshot(pack({**columns, "moves/0": np.arange(3.0)}))


def test_a_snapshot_with_something_missing_is_refused(desk: Desk) -> None:
    program = make(desk, shadow="wiql")
    record(program, write(rounds=2))
    about, arrays = unpack_snapshot(program.projection.dump())
    for name in about:
        less = {key: value for key, value in about.items() if key != name}
        with pytest.raises(InputError, match="This version cannot read the snapshot"):
            projection_from(program, pack_snapshot(less, arrays))
    for name in arrays:
        with pytest.raises(InputError, match="This version cannot read the snapshot"):
            projection_from(program, pack_snapshot(about, {key: value for key, value in arrays.items() if key != name}))
    with pytest.raises(InputError, match="This version cannot read the snapshot"):
        projection_from(program, pack_snapshot(about, arrays | {"agents.mood": np.zeros(9)}))


def test_a_snapshot_of_other_policies_is_refused(desk: Desk) -> None:
    one, two, three = make(desk, "1"), make(desk, "2", policy="egt:eta=2.0"), make(desk, "3", shadow="wiql")
    for program in (one, two, three):
        record(program, write(rounds=2))
    for program, other in ((one, two), (two, one), (one, three)):
        about, arrays = unpack_snapshot(other.projection.dump())
        mine, _ = unpack_snapshot(program.projection.dump())
        with pytest.raises(InputError, match="snapshot"):
            projection_from(program, pack_snapshot(mine | {"policy_states": about["policy_states"]}, arrays))


def find_palette(bits: Keys) -> tuple[int, Bytes, Keys]:
    codes, values = np.full(bits.size, 255, np.uint8), np.zeros(MAX_PALETTE, np.uint64)
    number = find_codes(bits, codes, values)
    return number, codes, values


def as_bits(numbers: list[float]) -> Keys:
    return np.array(numbers, np.float64).view(np.uint64)


@settings(derandomize=True, max_examples=80, deadline=None)
@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=40), st.data())
def test_codes_give_back_every_value_and_values_come_in_the_order_of_their_first_place(
    palette: list[int], data: st.DataObject
) -> None:
    column = np.array(data.draw(st.lists(st.sampled_from(palette), max_size=200)), np.uint64)
    number, codes, values = find_palette(column)
    assert values[codes[: column.size]].tolist() == column.tolist()
    assert values[:number].tolist() == list(dict.fromkeys(column.tolist()))


@pytest.mark.parametrize(("different", "found"), [(255, 255), (256, 256), (257, -1), (5000, -1)])
def test_at_most_256_values_are_found(different: int, found: int) -> None:
    rng = np.random.default_rng(1)
    palette = rng.integers(0, 2**63, different, dtype=np.uint64)
    column = np.concatenate([palette, rng.choice(palette, 3000)])
    number, codes, values = find_palette(column)
    assert number == found
    if number > 0:
        assert (values[codes] == column).all()


def test_values_that_want_the_same_slot_are_kept_apart() -> None:
    candidates = np.arange(200_000, dtype=np.uint64)
    wanted = [int(mix(bits) & SLOTS) for bits in candidates]
    crowded = candidates[np.array(wanted) >= 1022][:200]  # two slots at the end of the table, so the search goes round
    column = np.concatenate([crowded, crowded[::-1], crowded])
    number, codes, values = find_palette(column)
    assert number == 200
    assert (values[codes] == column).all()


def test_values_are_taken_by_their_bits() -> None:
    column = as_bits([0.0, -0.0, np.nan, np.inf, -np.nan, np.nan, 0.0])
    number, codes, _ = find_palette(column)
    assert (number, codes.tolist()) == (5, [0, 1, 2, 3, 4, 2, 0])


def test_a_first_value_of_all_ones_or_zeros_is_a_value_like_any_other() -> None:
    column = np.array([2**64 - 1, 0, 2**64 - 1, 0], np.uint64)
    number, codes, values = find_palette(column)
    assert (number, codes.tolist(), values[:2].tolist()) == (2, [0, 1, 0, 1], [2**64 - 1, 0])


def test_nothing_has_no_values() -> None:
    assert find_palette(np.zeros(0, np.uint64))[0] == 0


def test_many_values_are_packed_in_threads_to_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    columns = {
        "few": random.integers(5, size=999).astype(np.float64),
        "many": random.random(999),
        "range": np.arange(999),
        "bits": random.random(999) < 0.5,
    }
    alone = pack(columns)
    monkeypatch.setattr(module, "MIN_PARALLEL", 1)
    assert pack(columns) == alone
    for name, column in unpack(alone).items():
        assert np.array_equal(column, columns[name])
    with pytest.raises(InputError, match="not-a-column"):
        pack({**columns, "not-a-column": np.zeros((2, 2))})


def test_a_code_without_a_value_is_damage() -> None:
    column = np.zeros(3, np.uint64)
    assert not module.spread(np.array([0, 2, 1], np.uint8), np.array([7, 9], np.uint64), column)
