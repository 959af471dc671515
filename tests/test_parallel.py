"""Work spread over threads covers everything once, and an error is not waited upon."""

import threading

import pytest

from restive.parallel import available_processors, map_chunks


@pytest.mark.parametrize(("size", "chunks", "threads"), [(10, 3, 2), (7, 7, 4), (5, 1, 8), (1000, 13, 1)])
def test_ranges_cover_everything_once(size: int, chunks: int, threads: int) -> None:
    seen: list[int] = []
    lock = threading.Lock()

    def work(first: int, last: int) -> None:
        with lock:
            seen.extend(range(first, last))

    map_chunks(work, size, chunks, threads)
    assert sorted(seen) == list(range(size))


def test_the_first_error_comes_out_and_drops_what_has_not_begun() -> None:
    begun: list[int] = []
    halted = threading.Event()

    def work(first: int, last: int) -> None:
        begun.append(first)
        if first == 0:
            raise KeyError(first)
        assert halted.wait(timeout=60)  # so that no worker is free for another chunk before the rest is dropped

    with pytest.raises(KeyError):
        map_chunks(work, 1000, 1000, 2, halt=halted.set)
    assert len(begun) <= 3


def test_work_in_progress_is_asked_to_stop() -> None:
    halted = threading.Event()

    def work(first: int, last: int) -> None:
        if first == 0:
            raise KeyError(first)
        assert halted.wait(timeout=60)

    with pytest.raises(KeyError):
        map_chunks(work, 2, 2, 2, halt=halted.set)


def test_there_is_at_least_one_processor() -> None:
    assert available_processors() >= 1
