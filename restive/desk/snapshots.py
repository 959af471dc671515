"""A projection as compact bytes, so that a long program opens fast: plain data and arrays of any shape, no pickle.

What is kept is small beside what it stands for: counts have few different values (`restive.desk.codec`).
"""

import json
from typing import Any

import numpy as np

from restive.desk.codec import DTYPES, pack, unpack
from restive.errors import InputError

FORMAT = "restive-projection-1"
PIECE = 2**26  # numbers in one packed column


def keep(about: dict[str, Any], arrays: dict[str, Any]) -> bytes:
    """Plain data and named arrays, of any kind of plain numbers, as bytes.

    >>> about, arrays = read_kept(keep({"length": 3}, {"moves": np.eye(2)}))
    >>> about["length"], arrays["moves"].tolist()
    (3, [[1.0, 0.0], [0.0, 1.0]])
    """
    kinds = {name: [array.dtype.str, array.shape] for name, array in arrays.items()}
    header = json.dumps({"format": FORMAT, "arrays": kinds, "about": about}, allow_nan=False).encode()
    columns = {"header": np.frombuffer(header, np.uint8)}
    for name, array in arrays.items():
        flat = np.ascontiguousarray(array).reshape(-1)
        packed = flat if flat.dtype in DTYPES else flat.view(np.uint8)
        for piece in range(-(-packed.size // PIECE)):
            columns[f"{name}/{piece}"] = packed[piece * PIECE : (piece + 1) * PIECE]
    return pack(columns)


def read_kept(content: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """What `keep` wrote; of another format it is refused."""
    columns = unpack(content)
    try:
        header = json.loads(columns.pop("header").tobytes())
        if header["format"] != FORMAT:
            raise InputError(f"a snapshot of format {header['format']!r}; this version reads {FORMAT!r}.")
        return header["about"], {name: _join(columns, name, *kind) for name, kind in header["arrays"].items()}
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"not a snapshot of a projection ({error}).") from None


def _join(columns: dict[str, Any], name: str, dtype: str, shape: list[int]) -> Any:
    pieces = [columns[f"{name}/{piece}"] for piece in range(sum(key.startswith(f"{name}/") for key in columns))]
    flat = np.concatenate(pieces) if len(pieces) > 1 else pieces[0] if pieces else np.zeros(0, np.dtype(dtype))
    return (flat if flat.dtype == np.dtype(dtype) else flat.view(np.dtype(dtype))).reshape(shape)
