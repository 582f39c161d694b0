"""Work over several processes: forked, so that what is there need not be sent, and biggest pieces first."""

from __future__ import annotations

import gc
import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_shared: tuple[Callable[[Any], Any], Sequence[Any]] = (lambda item: item, ())


def spread(
    function: Callable[[Item], Result], items: Sequence[Item], sizes: Sequence[int], jobs: int, worth: int
) -> Iterator[tuple[int, Result]]:
    """(number of the item, `function` of it) for every item, as they come; results must be picklable.

    `jobs` 0 means one process a core. When the `sizes` together are less than `worth`, a pool would cost more than it saves and the work is
    done here.
    """
    global _shared
    count = jobs or os.cpu_count() or 1
    if count <= 1 or len(items) < 2 or sum(sizes) < worth or "fork" not in multiprocessing.get_all_start_methods():
        yield from ((number, function(item)) for number, item in enumerate(items))
        return
    order = sorted(range(len(items)), key=lambda i: -sizes[i])
    _shared = (function, items)
    gc.freeze()
    try:
        with multiprocessing.get_context("fork").Pool(count, initializer=gc.disable) as pool:
            yield from pool.imap_unordered(_call, order, chunksize=4)
    finally:
        _shared = (lambda item: item, ())
        gc.unfreeze()


def _call(number: int) -> tuple[int, Any]:
    function, items = _shared
    return number, function(items[number])
