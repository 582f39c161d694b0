"""Checks every address that a kernel touches under the Triton interpreter: an access outside of all buffers is noted and not made."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import Any


class Guard:
    """Known buffers by address. `strays` are accesses outside: (kind, buffer before it, element offset from that buffer's start)."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._buffers: list[tuple[int, int, str, int]] = []
        self.strays: list[tuple[str, str, int]] = []
        self.active = False

    def add(self, name: str, start: int, size: int, itemsize: int) -> None:
        """A buffer of `size` bytes at address `start`."""
        place = bisect_right(self._starts, start)
        self._starts.insert(place, start)
        self._buffers.insert(place, (start, start + size, name, itemsize))

    def filter(self, kind: str, addresses: Any, mask: Any) -> Any:
        """`mask` without the lanes whose address lies outside of every buffer."""
        import numpy as np

        flat = np.asarray(addresses).astype(np.uint64).reshape(-1)
        mask = np.asarray(mask).astype(bool)  # the interpreter takes no other dtype
        wanted = np.broadcast_to(mask, np.shape(addresses)).reshape(-1).copy()
        if not wanted.any() or not self._starts:
            return mask
        starts = np.asarray(self._starts, dtype=np.uint64)
        ends = np.asarray([buffer[1] for buffer in self._buffers], dtype=np.uint64)
        place = np.searchsorted(starts, flat, side="right").astype(np.int64) - 1
        inside = (place >= 0) & (flat < ends[np.maximum(place, 0)])
        for lane in np.flatnonzero(wanted & ~inside)[:8]:
            start, _, name, itemsize = min(
                self._buffers, key=lambda buffer: min(abs(int(flat[lane]) - buffer[0]), abs(int(flat[lane]) - buffer[1]))
            )
            if len(self.strays) < 64:
                self.strays.append((kind, name, (int(flat[lane]) - start) // itemsize))
        return (wanted & inside).reshape(np.shape(addresses))


def install(guard: Guard) -> bool:
    """Puts `guard` between the interpreter and memory. False, and nothing is checked, when this Triton's interpreter is built otherwise."""
    try:
        from triton.runtime import interpreter

        builder = interpreter.InterpreterBuilder
        handle: Callable[..., Any] = interpreter.TensorHandle
        load, store, rmw = builder.create_masked_load, builder.create_masked_store, builder.create_atomic_rmw
    except (ImportError, AttributeError):
        return False

    def checked(kind: str, pointer: Any, mask: Any) -> Any:
        return handle(guard.filter(kind, pointer.data, mask.data), mask.dtype) if guard.active else mask

    def masked_load(self: Any, ptrs: Any, mask: Any, *rest: Any, **named: Any) -> Any:
        return load(self, ptrs, checked("load", ptrs, mask), *rest, **named)

    def masked_store(self: Any, ptrs: Any, value: Any, mask: Any, *rest: Any, **named: Any) -> Any:
        return store(self, ptrs, value, checked("store", ptrs, mask), *rest, **named)

    def atomic_rmw(self: Any, op: Any, ptr: Any, val: Any, mask: Any, *rest: Any, **named: Any) -> Any:
        return rmw(self, op, ptr, val, checked("atomic", ptr, mask), *rest, **named)

    builder.create_masked_load, builder.create_masked_store, builder.create_atomic_rmw = masked_load, masked_store, atomic_rmw
    return True
