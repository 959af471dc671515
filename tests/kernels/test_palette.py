"""The few values of a column against NumPy's own search for different values."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from restive.kernels.palette import LARGEST, SLOTS, find_codes
from restive.kernels.rng import mix
from restive.types import Bytes, Keys


def find(bits: Keys) -> tuple[int, Bytes, Keys]:
    codes, values = np.full(bits.size, 255, np.uint8), np.zeros(LARGEST, np.uint64)
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
    number, codes, values = find(column)
    assert values[codes[: column.size]].tolist() == column.tolist()
    assert values[:number].tolist() == list(dict.fromkeys(column.tolist()))


@pytest.mark.parametrize(("different", "found"), [(255, 255), (256, 256), (257, -1), (5000, -1)])
def test_at_most_256_values_are_found(different: int, found: int) -> None:
    rng = np.random.default_rng(1)
    palette = rng.integers(0, 2**63, different, dtype=np.uint64)
    column = np.concatenate([palette, rng.choice(palette, 3000)])
    number, codes, values = find(column)
    assert number == found
    if number > 0:
        assert (values[codes] == column).all()


def test_values_that_want_the_same_slot_are_kept_apart() -> None:
    candidates = np.arange(200_000, dtype=np.uint64)
    wanted = [int(mix(bits) & SLOTS) for bits in candidates]
    crowded = candidates[np.array(wanted) >= 1022][:200]  # two slots at the end of the table, so the search goes round
    column = np.concatenate([crowded, crowded[::-1], crowded])
    number, codes, values = find(column)
    assert number == 200
    assert (values[codes] == column).all()


def test_values_are_taken_by_their_bits() -> None:
    column = as_bits([0.0, -0.0, np.nan, np.inf, -np.nan, np.nan, 0.0])
    number, codes, _ = find(column)
    assert (number, codes.tolist()) == (5, [0, 1, 2, 3, 4, 2, 0])


def test_a_first_value_of_all_ones_or_zeros_is_a_value_like_any_other() -> None:
    column = np.array([2**64 - 1, 0, 2**64 - 1, 0], np.uint64)
    number, codes, values = find(column)
    assert (number, codes.tolist(), values[:2].tolist()) == (2, [0, 1, 0, 1], [2**64 - 1, 0])


def test_nothing_has_no_values() -> None:
    assert find(np.zeros(0, np.uint64))[0] == 0
