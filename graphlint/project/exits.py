"""Kernel paths that end a lane with some of its outputs unwritten."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from graphlint.facts.expr import Expr, children
from graphlint.facts.kernels import KernelModel, Segment
from graphlint.project.effect import Site
from graphlint.project.index import Index
from graphlint.project.kernels import KernelDef
from graphlint.project.timeline import Timelines

#: pointers whose stale content is followed: indices, slots, tables, lengths, offsets (float rows are not)
_INDEX_LIKE = re.compile(r"ind(ex|ices|ptr)|idx|slot|table|_ids?_|page|block|len|loc|offset|pos", re.IGNORECASE)


class SkippedOutput(NamedTuple):
    """`pointer` is stored on the full path of a lane, `written` also on the early one that ends at `exit_site`."""

    kernel: KernelDef
    pointer: str
    written: str
    conditions: tuple[Expr, ...]
    exit_site: Site
    written_site: Site
    store_site: Site
    is_index: bool


def skipped_outputs(index: Index, timelines: Timelines) -> Iterator[SkippedOutput]:
    """Every early exit, decided by a lane's data, that comes after a store to one per-lane output and before the store to another.

    Both outputs must be launched on buffers that outlive the step, and nobody else may write the skipped one.
    """
    kept: set[tuple[str, str]] = set()
    shared: set[tuple[str, str]] = set()
    for root in timelines.roots():
        accesses = timelines.of(root)
        writers: dict[str, set[str | None]] = defaultdict(set)
        for access in accesses:
            if access.effect.kind in ("write", "fill", "update"):
                writers[access.buffer.key].add(access.effect.kernel)
        for access in accesses:
            if access.effect.kernel is not None and access.buffer.persistent and access.effect.pointer is not None:
                key = (access.effect.kernel, access.effect.pointer)
                kept.add(key)
                if writers[access.buffer.key] - {access.effect.kernel}:
                    shared.add(key)
    candidates = [found for kernel in sorted({kernel for kernel, _ in kept}) for found in _of_kernel(index.kernels[kernel])]
    for found in candidates:
        pointer, written = (found.kernel.id, found.pointer), (found.kernel.id, found.written)
        if pointer in kept and written in kept and pointer not in shared:
            yield found


def _of_kernel(kernel: KernelDef) -> Iterator[SkippedOutput]:
    model = kernel.model
    final = {pointer for path in model.exits if not path.early for pointer in path.stored}
    lanes = {pointer: segment for segment in model.segments if (pointer := segment.pointer) in final and _per_lane(segment)}
    reported: set[str] = set()
    for path in model.exits:
        if not path.early or not path.stored or not any(_depends_on_data(test) for test in path.when):
            continue
        written = [pointer for pointer in path.stored if pointer in lanes]
        if not written:
            continue
        for pointer, segment in lanes.items():
            if pointer in path.stored or pointer in reported or segment.axis != lanes[written[0]].axis or not _INDEX_LIKE.search(pointer):
                continue
            if _covered_elsewhere(model, pointer, segment):
                continue
            reported.add(pointer)
            yield SkippedOutput(
                kernel,
                pointer,
                written[0],
                path.when,
                Site(kernel.path, path.span, kernel.id),
                Site(kernel.path, lanes[written[0]].span, kernel.id),
                Site(kernel.path, segment.span, kernel.id),
                True,
            )


def _per_lane(segment: Segment) -> bool:
    return segment.kind == "store" and segment.role in ("lane", "fill") and segment.axis is not None


def _covered_elsewhere(model: KernelModel, pointer: str, segment: Segment) -> bool:
    """Another store of the pointer runs on every path (no condition of its own)."""
    return any(s.pointer == pointer and s.kind == "store" and not s.when and s.span != segment.span for s in model.segments)


def _depends_on_data(test: Expr) -> bool:
    """The condition looks at what a buffer holds, not only at program ids and arguments."""
    stack = [test]
    while stack:
        node = stack.pop()
        if node[0] == "load" and _of_lane(node[2]):
            return True
        stack.extend(children(node))
    return False


def _of_lane(index: Expr) -> bool:
    """The loaded element is this lane's: its index depends on the program."""
    stack = [index]
    while stack:
        node = stack.pop()
        if node[0] == "pid":
            return True
        stack.extend(children(node))
    return False
