"""The few different values of a long column, found in one pass: a code for each place, and the values by code.

Values are taken by their bits, so NaN, −0.0 and infinities are values like any other. A small table with open
addressing finds each value's code; the value before is tried first, because neighbours are often alike.
"""

import numpy as np

from restive.kernels.jit import compiled
from restive.kernels.rng import mix
from restive.types import Bytes, Keys

LARGEST = 256
SLOTS = np.uint64(1023)


@compiled
def find_codes(bits: Keys, codes: Bytes, values: Keys) -> int:
    """Fill `codes`, one for each of `bits`, and `values`, at most 256; returns how many values there are, −1 for more.

    >>> codes, values = np.empty(4, np.uint8), np.empty(256, np.uint64)
    >>> find_codes(np.array([7, 9, 7, 8], np.uint64), codes, values), codes.tolist(), values[:3].tolist()
    (3, [0, 1, 0, 2], [7, 9, 8])
    """
    if bits.size == 0:
        return 0
    table = np.full(1024, -1, np.int64)
    found = 0
    last, code = ~bits[0], 0
    for place in range(bits.size):
        if bits[place] != last:
            last = bits[place]
            slot = mix(last) & SLOTS
            while table[slot] >= 0 and values[table[slot]] != last:
                slot = (slot + np.uint64(1)) & SLOTS
            if table[slot] < 0:
                if found == LARGEST:
                    return -1
                table[slot], values[found] = found, last
                found += 1
            code = table[slot]
        codes[place] = code
    return found
