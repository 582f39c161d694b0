"""Unit checks: a buffer counted in one unit that is sliced in another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from graphlint.facts.expr import Expr, children, strip
from graphlint.project.regions import runs_once
from graphlint.project.timeline import Access, Timelines


class UnitMismatch(NamedTuple):
    """`access` slices a buffer by tokens; the buffer has one entry a request (`proof`: its allocation or a writer)."""

    access: Access
    #: a writer of the same buffer that counts requests, when one was seen
    writer: Access | None
    #: the count belongs to a part of the batch (decodes) where one token a request is usual
    partial: bool


def unit_mismatches(timelines: Timelines) -> Iterator[UnitMismatch]:
    """Every slice of a per-request buffer by a token count, one per buffer."""
    writers: dict[str, Access] = {}
    suspects: list[Access] = []
    for root in timelines.roots():
        for access in timelines.of(root):
            if access.axis != 0 or access.hi_expr is None or access.view.row:
                continue
            unit = access.hi.unit
            if unit == "requests" and access.effect.kind in ("write", "fill"):
                writers.setdefault(access.buffer.key, access)
            elif unit == "tokens" and access.effect.kernel is None and access.buffer.persistent:
                suspects.append(access)
    chosen: dict[str, UnitMismatch] = {}
    for access in sorted(suspects, key=_closeness):
        buffer = access.buffer
        capacity = buffer.capacity
        if not (capacity.known and capacity.terms and capacity.unit == "requests"):
            continue
        if runs_once(access.effect.site.function.rsplit(".", 1)[-1]) or _one_token_each(access):
            continue
        if buffer.key not in chosen:
            chosen[buffer.key] = UnitMismatch(access, writers.get(buffer.key), _of_a_part(access))
    yield from chosen.values()


def _closeness(access: Access) -> tuple[bool, int, str, int]:
    """Prefers the slice in the step function itself over those in its helpers."""
    site = access.effect.site
    return site.function != access.root.id, len(access.effect.chain), site.path, site.span.line


def _of_a_part(access: Access) -> bool:
    """The bound counts a part of the batch, by its own name or that of what it was bound to."""
    stack = [access.hi_expr] if access.hi_expr is not None else []
    while stack:
        node = stack.pop()
        name = str(node[1] if node[0] in ("let", "local") else node[2] if node[0] in ("attr", "param") else "")
        if "decode" in name or "prefill" in name:
            return True
        stack.extend(children(node) if node[0] in ("let", "bin", "if", "phi", "or") else [])
    return False


def _one_token_each(access: Access) -> bool:
    """A guard on the way proves that tokens and requests are equal (`num_tokens == num_reqs`, a query length of one)."""
    for guard in (*access.effect.guards, *(g for step in access.effect.chain for g in step.guards)):
        guard = strip(guard)
        if guard[0] == "cmp" and guard[1] == "==":
            left, right = strip(guard[2]), strip(guard[3])
            if right == ("const", 1) or left == ("const", 1):
                return True
            if {_unit_of_name(guard[2]), _unit_of_name(guard[3])} == {"tokens", "requests"}:
                return True
    return False


def _unit_of_name(expr: Expr) -> str | None:
    text = str(expr[1] if expr[0] in ("let", "local", "global") else expr[2] if expr[0] in ("attr", "param") else "")
    if "token" in text:
        return "tokens"
    return "requests" if "req" in text or text.endswith("decodes") or text == "bs" else None
