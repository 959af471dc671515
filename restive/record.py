"""Files that are whole or not there: any content by way of a part file, and arrays with a description as Parquet.

A record is columns over the same rows, and plain data that says where they come from. A digest of both is kept with
them, so that a file that was cut short or changed is refused, never read as if it were whole.
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
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(place)  # a full disk does not say which file it was
        raise


def save(path: str | PathLike[str], kind: str, about: Mapping[str, Any], columns: Columns) -> None:
    """Write columns of one length, [rows, ...] each, and what they are about."""
    import polars

    text = json.dumps(about)
    metadata = {"format": kind, "spec": text, "digest": _digest(text, columns)}
    content = BytesIO()
    polars.DataFrame(columns).write_parquet(content, metadata=metadata)
    write_whole(path, content.getvalue())


def load(path: str | PathLike[str], kind: str, what: str) -> tuple[dict[str, Any], Columns]:
    """Read what `save` wrote; `what` it should be is said when it is not."""
    import polars

    content = Path(path).read_bytes()
    try:
        metadata, frame = polars.read_parquet_metadata(BytesIO(content)), polars.read_parquet(BytesIO(content))
    except (polars.exceptions.PolarsError, polars.exceptions.PanicException) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise InputError(f"{path}: not a Parquet file, or not a whole one ({reason}).") from None
    if metadata.get("format") != kind:
        raise InputError(f"{path}: not {what} of this version (format {metadata.get('format')!r}, not {kind!r}).")
    columns = {name: np.ascontiguousarray(frame[name].to_numpy()) for name in frame.columns}
    if metadata.get("digest") != _digest(metadata.get("spec", ""), columns):
        raise InputError(f"{path}: damaged; what is in it is not what was written.")
    return json.loads(metadata["spec"]), columns


def _digest(text: str, columns: Columns) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(columns):
        digest.update(f"{name} {columns[name].dtype} {columns[name].shape}".encode())
        digest.update(np.ascontiguousarray(columns[name]).data)
    return digest.hexdigest()
