"""From analysis to evidence: sites as trace points, stale tails as witnesses, confidence from what was proved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphlint.facts.expr import Expr, show
from graphlint.finding import Confidence, Finding, Severity, TracePoint, Witness

if TYPE_CHECKING:  # rules load for `graphlint rule` too, which needs no engine
    from graphlint.extents import Extent
    from graphlint.project.buffers import Buffer
    from graphlint.project.effect import Effect, Site
    from graphlint.project.lifetime import StaleTail
    from graphlint.project.timeline import Access

#: how bad a wrong lane is, by what the buffer means
MEANING_SEVERITY: dict[str, Severity] = {
    "kv write slot": "error",
    "state index": "error",
    "gather index": "error",
    "indptr": "error",
    "length": "error",
    "mask": "warning",
    "data": "warning",
}


def symbol_of(site: Site) -> str:
    """`Class.method` or the kernel's name."""
    return site.function.split(":", 1)[1]


def point(site: Site, label: str) -> TracePoint:
    """A step of a trace."""
    span = site.span
    return TracePoint(site.path, span.line, label, span.column, span.end_line, span.end_column)


def place(effect: Effect) -> Site:
    """Where the access itself stands: in the kernel for launches."""
    return effect.inside or effect.site


def decided(stale: StaleTail) -> Site:
    """Where the extent of a host write is decided.

    The write itself, unless it stands in a class that maintains its own buffer for others (a block table): then the call to it from
    the code in which writer and reader meet.
    """
    write = stale.write
    if write.buffer.class_id is None or write.buffer.own or stale.reader.buffer.own:
        return write.effect.site
    home = write.buffer.class_id.split(":")[0]
    frames = (*write.effect.chain, write.effect.site)
    other = (*stale.reader.effect.chain, stale.reader.effect.site)
    meeting = next((here for here, there in zip(frames, other, strict=False) if here != there), frames[0])
    if meeting.function.split(":")[0] == home:
        return write.effect.site
    return next((step for step in reversed(frames) if step.function.split(":")[0] != home), write.effect.site)


def bound_text(expr: Expr | None, extent: Extent) -> str:
    """A bound with its unit and state, e.g. `num_reqs (live requests)`."""
    text = show(expr) if expr is not None else "all lanes"
    return f"`{text}` ({extent})" if extent.known and extent.terms else f"`{text}`"


def who_reads(stale: StaleTail) -> str:
    """The reader and its bound in words; a captured function is named, because its count and the writer's may share a name."""
    reader = stale.reader
    bound = show(reader.hi_expr) if reader.hi_expr is not None else "its capacity"
    if stale.captured:
        return f"the graph captured from `{reader.root.fact.qualname}` reads it up to its `{bound}` ({reader.hi})"
    return f"it is read up to `{bound}` ({reader.hi})"


def severity_of(buffer: Buffer) -> Severity:
    """How bad a wrong lane of this buffer is, by what it means: write slots, indices and lengths are errors, data is a warning."""
    return MEANING_SEVERITY[buffer.meaning]


def lanes_witness(unit: str, mode: str = "FULL", per: int = 1) -> Witness:
    """12 live, then 3 padded to 4: the schedule that shows a stale lane."""
    steps = [
        {"live": 12 * per, "padded": 12 * per, "unit": unit, "mode": mode},
        {"live": 3 * per, "padded": 4 * per, "unit": unit, "mode": mode},
    ]
    which = f"lanes {3 * per} to {4 * per - 1} still hold" if per > 1 else "lane 3 still holds"
    text = f"A step with {12 * per} {unit}, then one with {3 * per} {unit} padded to {4 * per}: {which} what the first step wrote."
    return Witness(steps, [3 * per, 4 * per], text)


def stale_witness(stale: StaleTail) -> Witness:
    """Schedule for a stale tail, in the unit of the writer's bound."""
    unit = stale.write.hi.unit or "requests"
    return lanes_witness(unit, "FULL", 4 if unit == "tokens" else 1)


def stale_trace(stale: StaleTail) -> list[TracePoint]:
    """Allocation, the calls that lead to the writer, the writer, the calls that lead to the reader, the reader."""
    write, reader = stale.write, stale.reader
    trace: list[TracePoint] = []
    if write.buffer.site is not None:
        capacity = write.buffer.capacity
        room = f" with room for {capacity}" if capacity.known and capacity.terms else ""
        trace.append(point(write.buffer.site, f"`{write.buffer.name}` is allocated{room} and kept between steps"))
    if write.effect.inside is not None:
        trace.append(point(write.effect.site, f"launches `{symbol_of(write.effect.inside)}`"))
    trace.append(point(place(write.effect), f"writes lanes up to {bound_text(write.hi_expr, write.hi)} only"))
    for late in stale.late_fills:
        trace.append(point(place(late.effect), f"fills from {bound_text(late.lo_expr, late.lo)}, which is past the live end"))
    trace.extend(_reader_trace(reader, stale))
    return trace


def _reader_trace(reader: Access, stale: StaleTail) -> list[TracePoint]:
    trace: list[TracePoint] = []
    shown = {(step.path, step.span.line) for step in stale.write.effect.chain}
    for step in reader.effect.chain:
        if (step.path, step.span.line) not in shown:
            trace.append(point(step, f"`{symbol_of(step)}` leads to the reader"))
    where = " in the captured graph" if stale.captured else ""
    how = reader.effect.how
    verb = how if how.startswith(("passed", "stored", "kept", "returned")) else f"read by {how}" if how.startswith("kernel") else how
    trace.append(point(place(reader.effect), f"is {verb} up to {bound_text(reader.hi_expr, reader.hi)}{where}"))
    return trace


def stale_confidence(stale: StaleTail) -> Confidence:
    """High when writer and reader are ordered in one step or the reader is captured, and both intervals are exact; low for plain data."""
    if stale.write.buffer.meaning == "data":
        return "low"  # rows of data harm only where they are mixed, which is not proved
    if stale.slots_padded and "position" in stale.write.buffer.name:
        return "low"  # a row without a slot stores nothing, wherever it thinks it stands
    exact = stale.write.effect.exact and stale.write.view.exact and stale.reader.view.exact and stale.reader.effect.exact
    if not exact:
        return "low" if not stale.ordered and not stale.captured else "medium"
    return "high" if stale.ordered or stale.captured else "medium"


def make_finding(
    *,
    rule: str,
    name: str,
    severity: Severity,
    confidence: Confidence,
    site: Site,
    message: str,
    buffer: str | None = None,
    trace: list[TracePoint] | None = None,
    witness: Witness | None = None,
) -> Finding:
    """A finding at a site."""
    span = site.span
    return Finding(
        rule=rule,
        name=name,
        severity=severity,
        confidence=confidence,
        path=site.path,
        line=span.line,
        column=span.column,
        end_line=span.end_line,
        end_column=span.end_column,
        symbol=symbol_of(site),
        message=message,
        buffer=buffer,
        trace=trace or [],
        witness=witness,
    )
