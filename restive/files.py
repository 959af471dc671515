"""Files that are whole or not there: any content by way of a part file, and arrays with a description as Parquet.

A record is columns over the same rows, and plain data that says where they come from. It carries a seal, a digest of
all its bytes, which is verified before anything reads them: a file that was cut short or changed is refused unparsed.
The seal lies in the gap that Parquet allows between the columns and the footer, so that others read the file as usual.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from restive.errors import InputError

Columns = dict[str, NDArray[Any]]
MAGIC, SEAL = b"PAR1", b"restive-seal-1:"
TAIL = 8  # bytes after the footer: its length, and the magic word


def write_whole(path: str | PathLike[str], content: bytes) -> None:
    """Write a file that appears whole or not at all, and is on the disk when this returns."""
    place = Path(path)
    part = place.with_name(f"{place.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(place)
    except BaseException as error:
        part.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None:
            raise OSError(error.errno, error.strerror, str(place)) from None  # not that of the part, or no name at all
        raise


def save(path: str | PathLike[str], kind: str, about: Mapping[str, Any], columns: Columns) -> None:
    """Write columns of one length, [rows, ...] each, and what they are about."""
    import polars

    content = BytesIO()
    polars.DataFrame(columns).write_parquet(content, metadata={"format": kind, "spec": json.dumps(about)})
    write_whole(path, _seal(content.getvalue()))


def load(path: str | PathLike[str], kind: str, what: str) -> tuple[dict[str, Any], Columns]:
    """Read what `save` wrote; `what` it should be is said when it is not."""
    import polars

    content = Path(path).read_bytes()
    if content[:4] != MAGIC or content[-4:] != MAGIC or len(content) < 3 * TAIL:
        raise InputError(f"{path}: not a Parquet file, or not a whole one.")
    if SEAL not in content:
        raise InputError(f"{path}: not {what} of this version; it was written by something else.")
    if not _is_sealed(content):
        raise InputError(f"{path}: damaged; what is in it is not what was written.")
    metadata, frame = polars.read_parquet_metadata(BytesIO(content)), polars.read_parquet(BytesIO(content))
    if metadata.get("format") != kind:
        raise InputError(f"{path}: not {what} of this version (format {metadata.get('format')!r}, not {kind!r}).")
    columns = {name: np.ascontiguousarray(frame[name].to_numpy()) for name in frame.columns}
    return json.loads(metadata["spec"]), columns


def _footer(content: bytes) -> int:
    """Where the footer of a Parquet file begins, by the length that it ends with."""
    return len(content) - TAIL - int.from_bytes(content[-TAIL:-4], "little")


def _seal(content: bytes) -> bytes:
    place = _footer(content)
    return content[:place] + SEAL + hashlib.sha256(content).digest() + content[place:]


def _is_sealed(content: bytes) -> bool:
    end = _footer(content)
    begin = end - len(SEAL) - hashlib.sha256().digest_size
    seal = SEAL + hashlib.sha256(content[: max(0, begin)] + content[max(0, end) :]).digest()
    return begin > 0 and content[begin:end] == seal
