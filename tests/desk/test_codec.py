"""Packed columns come back bit for bit, are as small as their kind allows, and refuse every damage."""

import struct
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from restive.desk import codec as module
from restive.desk.codec import DTYPES, MAGIC, Column, pack, unpack
from restive.errors import InputError

N = 100_000
LUCK = np.random.default_rng(7)


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
    assert_same({"up": ends, "down": ends[::-1], "wide": np.resize(ends[[0, -1]], 50), "luck": LUCK.permutation(ends)})
    assert_same({"all": LUCK.integers(low, high, 3000, dtype, endpoint=True)})


@pytest.mark.parametrize("values", [255, 256, 257])
def test_palette_holds_up_to_256_values_wherever_they_first_appear(values: int) -> None:
    column = np.zeros(N)
    column[-values:] = LUCK.random(values)
    column[-1] = 0.0
    assert_same({"late": column, "mixed": LUCK.permutation(column)})
    assert forms_in(pack({"late": column})) == [(module.PALETTE if values <= 256 else module.RAW, 1)]


@pytest.mark.parametrize(
    ("column", "most"),
    [
        (np.arange(5, N), 80),
        (np.full(N, 3, np.int16), 80),
        (np.full(N, np.nan), 80),
        (LUCK.random(N) < 0.5, N // 8 + 80),
        (np.flatnonzero(LUCK.random(2 * N) < 0.5), N),
        (LUCK.choice([0.1, 0.2, 0.9], N), N),
        (LUCK.integers(0, 4, N).astype(np.int16), N),
        (10**12 + LUCK.permutation(N), 4 * N + 80),
        (LUCK.random(N), 8 * N + 80),
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
    monkeypatch.setattr(module, "MOST", 1000)
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
