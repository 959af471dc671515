"""The whole paper at full size, for which there is patience only when it is asked for by name."""

from benchmarks import reproduction
from benchmarks.timing import Row


def rows() -> list[Row]:
    return reproduction.rows(quick=False, limit=600)
