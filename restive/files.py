"""Reading and writing files: atomic writes, `.npz` archives of plain arrays, and Parquet tables with a description.

Every file is written to a temporary file and renamed, so that it is complete or absent. Beside a Parquet file `x` lies
its SHA-256 checksum `x.sha256`, in the format of `sha256sum`: the reader compares it before it parses the file, because
Parquet readers may abort on damaged input. The members of an `.npz` archive have checksums by themselves.
"""

import hashlib
import json
import os
import zipfile
from collections.abc import Iterable, Mapping
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from restive.errors import InputError

Columns = dict[str, NDArray[Any]]


def write_atomic(path: str | PathLike[str], content: bytes | Iterable[bytes], mode: int = 0o666) -> None:
    """Write a file that is complete or absent, with permissions `mode`; it is on the disk when this returns.

    A long content may come in pieces.
    """
    target = Path(path)
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
            file.writelines([content] if isinstance(content, bytes) else content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
        _sync_folder(target.parent)
    except BaseException as error:
        part.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None:
            raise OSError(error.errno, error.strerror, str(target)) from None  # name the target, not the part
        raise


def _sync_folder(folder: Path) -> None:
    if hasattr(os, "O_DIRECTORY"):
        listing = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(listing)
        finally:
            os.close(listing)


def write_npz(path: str | PathLike[str], arrays: Mapping[str, Any], compress: bool = False) -> None:
    """Write arrays by name to an `.npz` archive, atomically."""
    content = BytesIO()
    (np.savez_compressed if compress else np.savez)(content, **arrays)
    write_atomic(path, content.getvalue())


def read_npz(path: str | PathLike[str]) -> Columns:
    """All arrays of an `.npz` archive by name; pickled objects are refused."""
    arrays, member = {}, "the archive"
    with Path(path).open("rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                for member in archive.namelist():
                    content = BytesIO(archive.read(member))  # `read` verifies the member's checksum
                    arrays[member.removesuffix(".npy")] = np.lib.format.read_array(content, allow_pickle=False)
        except Exception as error:  # zip, its compressions and NumPy each raise their own on a damaged file
            reason = str(error).partition("\n")[0].rstrip(".")
            raise InputError(f"{path}: not an .npz file of plain arrays ({member}: {reason}).") from None
    return arrays


def write_parquet(
    path: str | PathLike[str], kind: str, spec: Mapping[str, Any], columns: Mapping[str, Any], checksum: bool = True
) -> None:
    """Write columns of one length, [rows, ...] each, with their format `kind` and a description in the metadata."""
    import polars

    content, beside = BytesIO(), _checksum_file(path)
    polars.DataFrame(columns).write_parquet(content, metadata={"format": kind, "spec": json.dumps(spec)})
    # Without a checksum a file is read as it is, so an interruption in between leaves nothing that looks damaged.
    beside.unlink(missing_ok=True)
    write_atomic(path, content.getvalue())
    if checksum:
        digest = hashlib.sha256(content.getbuffer()).hexdigest()
        write_atomic(beside, f"{digest}  {Path(path).name}\n".encode())


def read_parquet(path: str | PathLike[str], kind: str, what: str) -> tuple[dict[str, Any], Columns]:
    """The description and the columns that `write_parquet` wrote; `what` names the expected content in errors."""
    import polars

    content, checksum = Path(path).read_bytes(), _checksum_file(path)
    if content[:4] != b"PAR1" or content[-4:] != b"PAR1" or len(content) < 12:
        raise InputError(f"{path}: not a Parquet file, or an incomplete one.")
    if checksum.exists() and checksum.read_text(encoding="utf-8")[:64] != hashlib.sha256(content).hexdigest():
        raise InputError(f"{path}: damaged; its checksum differs from {checksum.name}.")
    try:
        metadata, frame = polars.read_parquet_metadata(BytesIO(content)), polars.read_parquet(BytesIO(content))
    except polars.exceptions.PolarsError as error:
        raise InputError(f"{path}: damaged ({error}).") from None
    if metadata.get("format") != kind:
        raise InputError(f"{path}: not {what} of this version (format {metadata.get('format')!r}, not {kind!r}).")
    columns = {name: np.ascontiguousarray(frame[name].to_numpy()) for name in frame.columns}
    return json.loads(metadata["spec"]), columns


def _checksum_file(path: str | PathLike[str]) -> Path:
    return Path(path).with_name(Path(path).name + ".sha256")
