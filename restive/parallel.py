"""The number of available processors, and a threaded map over ranges (kernels release the GIL)."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import pairwise


def available_processors() -> int:
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def map_chunks(
    work: Callable[[int, int], None],
    size: int,
    chunks: int,
    threads: int | None = None,
    halt: Callable[[], None] = lambda: None,
) -> None:
    """Call `work(first, last)` for `chunks` ranges that cover 0 to `size`, in at most `threads` threads.

    After the first error or an interruption `halt` is called, so that running work can stop early, and chunks that
    have not started are dropped.
    """
    workers = min(threads or available_processors(), chunks)
    edges = [size * chunk // chunks for chunk in range(chunks + 1)]
    if workers == 1:
        for first, last in pairwise(edges):
            work(first, last)
        return
    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(work, first, last) for first, last in pairwise(edges)]
        try:
            for done in as_completed(futures):
                done.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            halt()
            raise
