"""How many processors there are for us, and work spread over them in threads (kernels release the GIL)."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise


def available_processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def spread(work: Callable[[int, int], None], size: int, chunks: int, threads: int | None = None) -> None:
    """Call `work(first, last)` for `chunks` ranges that cover 0 to `size`, at most `threads` at once.

    The first error ends it: chunks that have not begun are dropped.
    """
    workers = threads or available_processors()
    edges = [size * chunk // chunks for chunk in range(chunks + 1)]
    if chunks == 1 or workers == 1:
        for first, last in pairwise(edges):
            work(first, last)
        return
    with ThreadPoolExecutor(min(workers, chunks)) as pool:
        waiting = [pool.submit(work, first, last) for first, last in pairwise(edges)]
        try:
            for done in waiting:
                done.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
