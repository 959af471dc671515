"""Messages between the coordinator and the tasks: pickles that name no classes and no array types, compressed.

A message is a few numbers and names of files, of which a plain pickle is mostly the names of classes.
"""

import pickle
import zlib
from collections.abc import Callable
from functools import cache
from io import BytesIO
from typing import Any

import numpy as np

from restive.desk.partitions.choices import Edge, Recorded, Stage
from restive.desk.partitions.files import ACTIVITY, BELIEF, CHOICES, GIVEN, LIST, PEOPLE, RANKED, File
from restive.desk.partitions.selection import Cut, Window
from restive.desk.partitions.tables import Given, Lists, Newcomers
from restive.desk.partitions.tasks import Learned, Partition, Ranked, Setting, load_setting
from restive.kernels.block_sums import Nodes

# Both sides have the same version, so a class is known by its place here.
_CLASSES: tuple[Any, ...] = (
    load_setting, Partition, File, Given, Lists, Newcomers, Learned, Nodes, Ranked, Stage, Cut, Window, Edge, Recorded,
)  # fmt: skip
_PLACES = {each: place for place, each in enumerate(_CLASSES)}
_KINDS = (LIST, PEOPLE, ACTIVITY, CHOICES, GIVEN, BELIEF, RANKED)


class _Pickler(pickle.Pickler):
    def persistent_id(self, obj: Any) -> Any:
        if isinstance(obj, np.ndarray):
            return obj.dtype.str, obj.shape, obj.tobytes()
        return _PLACES.get(obj) if isinstance(obj, type) or obj is load_setting else None


class _Unpickler(pickle.Unpickler):
    def persistent_load(self, pid: Any) -> Any:
        if isinstance(pid, int):
            return _CLASSES[pid]
        dtype, shape, content = pid
        return np.frombuffer(content, dtype).reshape(shape)


def pack(value: Any) -> bytes:
    """A message.

    >>> unpack(pack((File("people/part-00003.parquet", "1f", 7), np.array([2.0]))))
    (File(path='people/part-00003.parquet', digest='1f', size=7), array([2.]))
    """
    packer = zlib.compressobj(9, zlib.DEFLATED, -15, zdict=_likely())
    return packer.compress(_pickle(value)) + packer.flush()


def _pickle(value: Any) -> bytes:
    buffer = BytesIO()
    _Pickler(buffer, 5).dump(value)
    return buffer.getvalue()


@cache
def _likely() -> bytes:
    """A pickle with what is in most messages, so that it need not be sent."""
    files = {kind: File(f"parts/00000/{kind}-00000-0123456789abcdef.parquet", "", 0) for kind in _KINDS}
    setting = Setting("", "", 0, 0, (), {}, "settings/00000-0123456789abcdef.json")
    numbers = (
        Nodes(np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros((1, 8))),
        Window(0, None, np.zeros(8, np.int32)),
    )
    return _pickle([*numbers, (setting, Partition(0, 1 << 20, 1 << 20, files), [Stage(-1, None)])])


def unpack(message: bytes) -> Any:
    """What a message says; its arrays cannot be written to."""
    return _Unpickler(BytesIO(zlib.decompressobj(-15, zdict=_likely()).decompress(message))).load()


def call(function: Callable[..., Any], message: bytes) -> bytes:
    """Run a task."""
    return pack(function(*unpack(message)))
