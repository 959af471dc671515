"""A compact, exact binary format for named columns of numbers, safe to read from untrusted sources.

A column is a one-dimensional array of bool, whole numbers of any width, or float64; lengths may differ. Each is stored
in the first form that fits: bits (bool), a range (start and step), ascending differences in the narrowest width, a
palette of at most 256 values with one byte each, offsets from the smallest in the narrowest width, raw. Floats are
handled by their bits, so NaN, -0.0 and infinities are restored exactly. A body is compressed if that makes it shorter.
A snapshot is plain data and arrays of any shape, packed as columns.

Layout, little endian: magic word, checksum of all that follows, number of columns; then for each column the length of
its name, dtype, form, whether it is compressed, length, size of the body before and after compression, name, body.
"""

import json
import struct
import zlib
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from restive.errors import InputError
from restive.kernels.jit import compiled
from restive.kernels.rng import mix
from restive.types import Bytes, Keys

Column: TypeAlias = NDArray[Any]
Bits: TypeAlias = NDArray[np.unsignedinteger]
T = TypeVar("T")

MAGIC = b"RSTVPK1\n"
TOP = struct.Struct("<8sIH")
ENTRY = struct.Struct("<BBBBQQQ")
DTYPES = tuple(np.dtype(kind) for kind in ("?", "<i1", "<i2", "<i4", "<i8", "<u1", "<u2", "<u4", "<u8", "<f8"))
PLACES = {dtype: place for place, dtype in enumerate(DTYPES)}
NARROW = tuple(np.dtype(kind) for kind in ("<u1", "<u2", "<u4"))
RAW, BITS, RANGE, STEPS, PALETTE, OFFSETS = range(6)
SAMPLE = 4096  # bytes compressed, and values counted, to decide whether to compress a body or to use a palette
MAX_PALETTE = 256
SLOTS = np.uint64(1023)
MAX_LENGTH = 1 << 27  # of a column; a forged length must not allocate all memory
MIN_PARALLEL, THREADS = 1 << 21, 2  # so many values are packed in threads; kernels and compression release the GIL
NOT_SMALL = -1  # the size of a body that is not compressed
SNAPSHOT_FORMAT = "restive-projection-1"
SNAPSHOT_PIECE = 1 << 26  # the longest column of a snapshot; longer arrays are split


def pack(columns: Mapping[str, Column]) -> bytes:
    """The columns as bytes.

    >>> unpack(pack({"number": np.array([3, 5]), "done": np.array([True])}))
    {'number': array([3, 5]), 'done': array([ True])}
    """
    entries = _map(_pack_column, columns, map(np.asarray, columns.values()), size=sum(map(np.size, columns.values())))
    pieces = [piece for entry in entries for piece in entry]
    checksum = zlib.crc32(struct.pack("<H", len(columns)))
    for piece in pieces:
        checksum = zlib.crc32(piece, checksum)
    return b"".join([TOP.pack(MAGIC, checksum, len(columns)), *pieces])


def unpack(content: bytes) -> dict[str, Column]:
    """The packed columns as new arrays; damaged bytes are refused with an `InputError`."""
    if len(content) < TOP.size or content[: len(MAGIC)] != MAGIC:
        raise InputError("These bytes are not packed columns of this version: the magic word is missing.")
    _, checksum, count = TOP.unpack_from(content)
    if zlib.crc32(memoryview(content)[TOP.size - 2 :]) != checksum:
        raise InputError("The packed columns are damaged: the checksum differs.")
    try:
        return _unpack_columns(memoryview(content), count)
    except (ValueError, IndexError, OverflowError, MemoryError, struct.error, zlib.error) as error:
        raise InputError(f"The packed columns are damaged: {error}.") from error


def pack_snapshot(about: dict[str, Any], arrays: Mapping[str, Column]) -> bytes:
    """Plain data and named arrays of any shape and numeric dtype as bytes.

    >>> about, arrays = unpack_snapshot(pack_snapshot({"length": 3}, {"moves": np.eye(2)}))
    >>> about["length"], arrays["moves"].tolist()
    (3, [[1.0, 0.0], [0.0, 1.0]])
    """
    dtypes = {name: [array.dtype.str, array.shape] for name, array in arrays.items()}
    header = json.dumps({"format": SNAPSHOT_FORMAT, "arrays": dtypes, "about": about}, allow_nan=False).encode()
    columns = {"header": np.frombuffer(header, np.uint8)}
    for name, array in arrays.items():
        flat = np.ascontiguousarray(array).reshape(-1)
        column = flat if flat.dtype in DTYPES else flat.view(np.uint8)
        for piece in range(-(-column.size // SNAPSHOT_PIECE)):
            columns[f"{name}/{piece}"] = column[piece * SNAPSHOT_PIECE : (piece + 1) * SNAPSHOT_PIECE]
    return pack(columns)


def unpack_snapshot(content: bytes) -> tuple[dict[str, Any], dict[str, Column]]:
    """The plain data and the arrays of a snapshot; other formats and damaged bytes are refused with an `InputError`."""
    columns = unpack(content)
    try:
        header = json.loads(columns.pop("header").tobytes())
        if header["format"] != SNAPSHOT_FORMAT:
            raise InputError(f"The snapshot has format {header['format']!r}; this version reads {SNAPSHOT_FORMAT!r}.")
        return header["about"], {name: _join_pieces(columns, name, *array) for name, array in header["arrays"].items()}
    except InputError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"These bytes are not a snapshot of a projection ({error}).") from None


def _join_pieces(columns: Mapping[str, Column], name: str, dtype: str, shape: list[int]) -> Column:
    pieces = [columns[f"{name}/{piece}"] for piece in range(sum(key.startswith(f"{name}/") for key in columns))]
    flat = np.concatenate(pieces) if len(pieces) > 1 else pieces[0] if pieces else np.zeros(0, np.dtype(dtype))
    return (flat if flat.dtype == np.dtype(dtype) else flat.view(np.dtype(dtype))).reshape(shape)


def _pack_column(name: str, column: Column) -> list[bytes]:
    """The entry of one column: header, name, body."""
    title = name.encode()
    little = column.dtype.newbyteorder("<")
    if column.ndim != 1 or little not in PLACES or len(title) > 255 or len(column) > MAX_LENGTH:
        raise InputError(
            f"Column {name!r} is {column.dtype} of shape {column.shape}; a column has one dimension, at most {MAX_LENGTH} "
            "places, is bool, whole numbers or float64, and its name has at most 255 bytes."
        )
    form, body = _encode(np.ascontiguousarray(column, dtype=little))
    small = _squeeze(body)
    kept = body if small is None else small
    entry = ENTRY.pack(len(title), PLACES[little], form, small is not None, len(column), len(body), len(kept))
    return [entry, title, kept]


def _encode(column: Column) -> tuple[int, bytes]:
    """The first form that fits the column, and its body."""
    if column.dtype.kind == "b":
        return BITS, np.packbits(column).tobytes()
    if column.dtype.kind in "iu" and (found := _encode_ascending(column)):
        return found
    if column.dtype.itemsize > 1 and (body := _encode_palette(column)) is not None:
        return PALETTE, body
    if column.dtype.kind in "iu" and (body := _encode_offsets(column)) is not None:
        return OFFSETS, body
    return RAW, column.tobytes()


def _bits_of(column: Column) -> Bits:
    """The same bytes as unsigned integers, which compare and subtract without NaN or overflow."""
    return column.view(f"<u{column.dtype.itemsize}")


def _width_for(largest: int, itemsize: int) -> np.dtype[np.unsignedinteger] | None:
    """The narrowest width that holds `largest` and is narrower than the column's own."""
    for width in NARROW:
        if width.itemsize < itemsize and largest < 1 << 8 * width.itemsize:
            return width
    return None


def _encode_ascending(column: Column) -> tuple[int, bytes] | None:
    """A range as (start, step), any other ascending column as its start and its differences."""
    if len(column) < 2:
        return None
    bits = _bits_of(column)
    steps = bits[1:] - bits[:-1]  # modulo the width, so that the sum gives back every value
    if (steps == steps[0]).all():
        return RANGE, bits[:1].tobytes() + steps[:1].tobytes()
    width = _width_for(int(steps.max()), column.dtype.itemsize)
    if width is None or (column[1:] < column[:-1]).any():
        return None
    return STEPS, bits[:1].tobytes() + bytes([width.itemsize]) + steps.astype(width).tobytes()


def _encode_palette(column: Column) -> bytes | None:
    """Up to 256 values and one byte for each place; None when there are more values, or few places."""
    bits = _bits_of(column)
    if len(bits) < 16 or (len(bits) > SAMPLE and len(np.unique(bits[:: len(bits) // SAMPLE + 1])) > MAX_PALETTE):
        return None
    codes, palette = np.empty(len(bits), np.uint8), np.empty(MAX_PALETTE, np.uint64)
    number = find_codes(bits.astype(np.uint64, copy=False), codes, palette)
    if not 0 <= number <= len(bits) // 2:
        return None
    places = b"" if number == 1 else codes.tobytes()
    return bytes([number - 1]) + palette[:number].astype(bits.dtype).tobytes() + places


@compiled
def find_codes(bits: Keys, codes: Bytes, values: Keys) -> int:
    """Fill `codes`, one for each of `bits`, and `values`, at most 256; returns how many values there are, −1 for more.

    A small table with open addressing finds each value's code; the value before is tried first, because neighbours are
    often alike.

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
                if found == MAX_PALETTE:
                    return -1
                table[slot], values[found] = found, last
                found += 1
            code = table[slot]
        codes[place] = code
    return found


def _encode_offsets(column: Column) -> bytes | None:
    """The smallest value and how far each is above it; None when that needs the full width."""
    if not len(column):
        return None
    low = column.min()
    width = _width_for(int(column.max()) - int(low), column.dtype.itemsize)
    if width is None:
        return None
    offsets = _bits_of(column) - _bits_of(np.array([low]))
    return np.array([low]).tobytes() + bytes([width.itemsize]) + offsets.astype(width).tobytes()


def _squeeze(body: bytes) -> bytes | None:
    """The body compressed, or None where that saves less than a tenth; a sample decides whether to try at all."""
    if len(body) < 64:
        return None
    middle = max(0, len(body) - SAMPLE) // 2
    sample = body[middle : middle + SAMPLE]
    small = zlib.compress(sample, 1)
    if len(small) > 0.9 * len(sample):
        return None
    if len(sample) < len(body):
        small = zlib.compress(body, 1)
    return small if len(small) <= 0.9 * len(body) else None


class _Entry(NamedTuple):
    """The dtype and length of a column."""

    dtype: np.dtype[np.generic]
    length: int


def _unpack_columns(content: memoryview, count: int) -> dict[str, Column]:
    """The columns of all entries; an inconsistent entry is a ValueError."""
    found: dict[str, tuple[memoryview, int, int, _Entry]] = {}
    place, total = TOP.size, 0
    for _ in range(count):
        title, kind, form, small, length, size, kept = ENTRY.unpack_from(content, place)
        place += ENTRY.size
        name = bytes(content[place : place + title]).decode()
        body = content[place + title : place + title + kept]
        place += title + kept
        if place > len(content) or length > MAX_LENGTH or size > 16 * MAX_LENGTH or small > 1:
            raise ValueError("an entry is longer than the content")
        found[name] = body, size if small else NOT_SMALL, form, _Entry(DTYPES[kind], length)
        total += length
    if place != len(content) or len(found) != count:
        raise ValueError("there are bytes after the last column")
    return (
        dict(zip(found, _map(_unpack_column, *zip(*found.values(), strict=True), size=total), strict=True))
        if found
        else {}
    )


def _unpack_column(body: memoryview, size: int, form: int, entry: "_Entry") -> Column:
    return _FORMS[form](body if size == NOT_SMALL else _stretch(body, size), entry)


def _map(function: Callable[..., T], *arguments: Iterable[Any], size: int) -> list[T]:
    """The results for each of the columns, which have so many values together; of many values in threads."""
    if size < MIN_PARALLEL:
        return list(map(function, *arguments))
    with ThreadPoolExecutor(THREADS) as threads:
        return list(threads.map(function, *arguments))


def _stretch(body: memoryview, size: int) -> memoryview:
    """The decompressed body, never more than `size` bytes."""
    stream = zlib.decompressobj()
    whole = stream.decompress(body, size) if size else b""
    if len(whole) != size or stream.decompress(stream.unconsumed_tail, 1):
        raise ValueError("a body has another size than its entry says")
    return memoryview(whole)


def _read(body: memoryview, dtype: np.dtype[np.generic], count: int, place: int = 0) -> Column:
    """Exactly `count` values that end with the body."""
    if len(body) != place + count * dtype.itemsize:
        raise ValueError("a body has another length than its entry says")
    return np.frombuffer(body, dtype, count, place)


def _unsigned(entry: _Entry) -> np.dtype[np.generic]:
    return np.dtype(f"<u{entry.dtype.itemsize}")


def _width_at(body: memoryview, place: int) -> np.dtype[np.generic]:
    for width in NARROW:
        if width.itemsize == body[place]:
            return width
    raise ValueError("there is no such width")


def _decode_raw(body: memoryview, entry: _Entry) -> Column:
    return _read(body, entry.dtype, entry.length).copy()


def _decode_bits(body: memoryview, entry: _Entry) -> Column:
    octets = _read(body, np.dtype("<u1"), (entry.length + 7) // 8)
    return np.unpackbits(octets.view(np.uint8), count=entry.length).view(np.bool_)


def _decode_range(body: memoryview, entry: _Entry) -> Column:
    start, step = _read(body, _unsigned(entry), 2)
    places = np.arange(entry.length, dtype=_unsigned(entry))
    return (places * step + start).view(entry.dtype)  # type: ignore[no-any-return]


def _decode_steps(body: memoryview, entry: _Entry) -> Column:
    itemsize = entry.dtype.itemsize
    width = _width_at(body, itemsize)
    values = np.empty(entry.length, _unsigned(entry))
    values[1:] = _read(body, width, entry.length - 1, itemsize + 1)
    values[:1] = _read(body[:itemsize], _unsigned(entry), 1)
    return np.cumsum(values, dtype=values.dtype, out=values).view(entry.dtype)


def _decode_palette(body: memoryview, entry: _Entry) -> Column:
    known = body[0] + 1
    start = 1 + known * entry.dtype.itemsize
    palette = _read(body[1:start], entry.dtype, known)
    if known == 1:
        _read(body, np.dtype("<u1"), 0, start)
        return np.full(entry.length, palette[0])
    codes = _read(body, np.dtype("<u1"), entry.length, start)
    if entry.dtype.itemsize < 8:
        return palette[codes]
    column = np.empty(entry.length, np.uint64)
    if not spread(codes, palette.view(np.uint64), column):
        raise ValueError("a code has no value")
    return column.view(entry.dtype)


@compiled
def spread(codes: Bytes, values: Keys, column: Keys) -> bool:
    """Fill a column with the values of the codes; whether each code has one.

    >>> column = np.zeros(3, np.uint64)
    >>> spread(np.array([1, 0, 1], np.uint8), np.array([7, 9], np.uint64), column), column.tolist()
    (True, [9, 7, 9])
    """
    for place in range(codes.size):
        if codes[place] >= values.size:
            return False
        column[place] = values[codes[place]]
    return True


def _decode_offsets(body: memoryview, entry: _Entry) -> Column:
    itemsize = entry.dtype.itemsize
    offsets = _read(body, _width_at(body, itemsize), entry.length, itemsize + 1)
    low = _read(body[:itemsize], _unsigned(entry), 1)
    return (offsets.astype(_unsigned(entry)) + low).view(entry.dtype)


_FORMS: tuple[Callable[[memoryview, _Entry], Column], ...] = (
    _decode_raw,
    _decode_bits,
    _decode_range,
    _decode_steps,
    _decode_palette,
    _decode_offsets,
)
