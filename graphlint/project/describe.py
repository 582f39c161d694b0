"""What the engine believes about a file or a line: extents of names, buffers and their events, regions, kernel models, call summaries."""

from __future__ import annotations

import os
from typing import Any

import msgspec

from graphlint.extents import Extent
from graphlint.facts.expr import show
from graphlint.facts.kernels import KernelModel, Segment, Span
from graphlint.project.index import FunctionDef
from graphlint.project.project import Project
from graphlint.project.regions import dummy_step, runs_once
from graphlint.project.timeline import Access


class Described(msgspec.Struct, frozen=True):
    """Facts of a file, or of the definitions around one line of it."""

    path: str
    line: int | None
    functions: list[dict[str, Any]]
    kernels: list[dict[str, Any]]


def describe_project(project: Project, path: str, line: int | None) -> Described:
    """Facts of `path` (as the project names it), around `line` if one is given."""
    functions = [
        _function(project, definition)
        for definition in project.index.functions.values()
        if definition.path == path and not definition.fact.opaque and _around(definition.fact.span, line)
    ]
    if line is not None and len(functions) > 1:
        functions = functions[-1:]  # the innermost
    kernels = [_kernel(k.model) for k in project.index.kernels.values() if k.path == path and _around(k.source.span, line)]
    return Described(path, line, functions, kernels)


def _around(span: Span, line: int | None) -> bool:
    return line is None or span.line <= line <= span.end_line


def _extent(extent: Extent) -> str | None:
    return str(extent) if extent.known else None


def _function(project: Project, definition: FunctionDef) -> dict[str, Any]:
    fact, cls, module = definition.fact, definition.owner, definition.module
    names: dict[str, dict[str, Any]] = {}
    for param in fact.params:
        extent = project.counts.of(("param", definition.id, param.name), cls, module)
        if extent.known:
            names[param.name] = {"name": param.name, "line": fact.span.line, "extent": str(extent), "from": "parameter"}
    for binding in fact.bindings:
        extent = project.counts.of(("let", binding.name, binding.value), cls, module)
        if extent.known and extent.terms:
            names[f"{binding.name}@{binding.span.line}"] = {
                "name": binding.name,
                "line": binding.span.line,
                "extent": str(extent),
                "from": _short(show(binding.value)),
            }
    accesses = project.timelines.accesses(project.expander.of(definition.id, cls), definition, cls)
    callers = project.timelines.callers().get(definition.id, set())
    return {
        "symbol": fact.qualname,
        "line": fact.span.line,
        "end_line": fact.span.end_line,
        "region": _region(project, definition),
        "class": cls.split(":")[1] if cls else None,
        "callers": sorted(c.split(":", 1)[1] for c in callers),
        "names": list(names.values()),
        "buffers": _buffers(accesses),
    }


def _region(project: Project, definition: FunctionDef) -> str:
    captures = project.regions.captured.get(definition.id)
    if captures:
        where = captures[0][0]
        return f"captured (passed to capture in {where.fact.qualname}, {os.path.basename(where.path)}:{captures[0][1]})"
    name = definition.fact.name
    if dummy_step(name):
        return "dummy run"
    return "start-up or capture" if runs_once(name) else "every step"


def _buffers(accesses: list[Access]) -> list[dict[str, Any]]:
    grouped: dict[str, dict[str, Any]] = {}
    for access in accesses:
        buffer = access.buffer
        entry = grouped.setdefault(
            buffer.key,
            {
                "name": buffer.name,
                "owner": buffer.owner,
                "meaning": buffer.meaning,
                "capacity": _extent(buffer.capacity),
                "initial": buffer.initial,
                "persistent": buffer.persistent,
                "allocated": f"{buffer.site.path}:{buffer.site.span.line}" if buffer.site else None,
                "events": [],
            },
        )
        effect = access.effect
        site = effect.inside or effect.site
        entry["events"].append(
            {
                "kind": effect.kind,
                "from": show(access.lo_expr) if access.lo_expr is not None else "0",
                "to": show(access.hi_expr) if access.hi_expr is not None else "end",
                "extent": _extent(access.hi) if access.hi_expr is not None else None,
                "by": effect.how,
                "path": site.path,
                "line": site.span.line,
                "through": [f"{os.path.basename(s.path)}:{s.span.line}" for s in effect.chain],
            }
        )
    return [
        entry for entry in grouped.values() if entry["allocated"] or any(e["kind"] != "read" or e["to"] != "end" for e in entry["events"])
    ]


def _kernel(model: KernelModel) -> dict[str, Any]:
    return {
        "symbol": model.qualname,
        "line": model.span.line,
        "end_line": model.span.end_line,
        "parameters": list(model.params),
        "pointers": list(model.pointers),
        "segments": [_segment(s) for s in model.segments],
        "exits": [
            {"line": path.span.line, "early": path.early, "when": [show(test) for test in path.when], "stored": list(path.stored)}
            for path in model.exits
        ],
        "not_understood": list(model.unknown),
    }


def _segment(segment: Segment) -> dict[str, Any]:
    return {
        "kind": segment.kind,
        "pointer": segment.pointer,
        "role": segment.role,
        "from": show(segment.lo),
        "to": show(segment.hi),
        "inner": [show(segment.inner[0]), show(segment.inner[1])] if segment.inner else None,
        "value": _short(show(segment.value)) if segment.value is not None else None,
        "when": [show(test) for test in segment.when],
        "exact": segment.exact,
        "line": segment.span.line,
    }


def _short(text: str, limit: int = 70) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def render(described: Described) -> str:
    """The same as text for people."""
    lines: list[str] = []
    for function in described.functions:
        lines.append(f"{described.path}:{function['line']}: {function['symbol']}  [{function['region']}]")
        if function["callers"]:
            lines.append(f"  called by {', '.join(function['callers'][:6])}")
        for name in function["names"]:
            lines.append(f"  {name['line']:>6}  {name['name']:<24} {name['extent']:<28} = {name['from']}")
        for buffer in function["buffers"]:
            room = f", room for {buffer['capacity']}" if buffer["capacity"] else ""
            kept = "kept between steps" if buffer["persistent"] else "fresh"
            lines.append(f"  buffer {buffer['owner']}.{buffer['name']}: {buffer['meaning']}{room}, {kept}")
            for event in buffer["events"]:
                extent = f"  ({event['extent']})" if event["extent"] else ""
                through = f"  through {' > '.join(event['through'])}" if event["through"] else ""
                lines.append(f"  {event['line']:>6}    {event['kind']:<6} [{event['from']}, {event['to']}){extent}  {event['by']}{through}")
        lines.append("")
    for kernel in described.kernels:
        lines.append(f"{described.path}:{kernel['line']}: kernel {kernel['symbol']}")
        for s in kernel["segments"]:
            inner = f" x [{s['inner'][0]}, {s['inner'][1]})" if s["inner"] else ""
            value = f" = {s['value']}" if s["value"] else ""
            when = f"  when {' and '.join(s['when'])}" if s["when"] else ""
            sure = "" if s["exact"] else "  (not exact)"
            lines.append(
                f"  {s['line']:>6}  {s['kind']:<6} {s['pointer']:<28} {s['role']:<8} [{s['from']}, {s['to']}){inner}{value}{when}{sure}"
            )
        for path in kernel["exits"]:
            if path["early"]:
                when, stored = " and ".join(path["when"]) or "always", ", ".join(path["stored"]) or "nothing"
                lines.append(f"  {path['line']:>6}  returns when {when}; stored {stored}")
        lines.extend(f"          not understood: {text}" for text in kernel["not_understood"])
        lines.append("")
    return "\n".join(lines).rstrip() or f"{described.path}: nothing here concerns batches, buffers or graphs"
