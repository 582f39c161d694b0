"""Findings about deployments: one constructor, the order of severity, and what rules ask of a resolved deployment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphlint.config.words import Span, shown
from graphlint.finding import Confidence, Finding, Fix, Severity, TracePoint

if TYPE_CHECKING:
    from graphlint.config.answer import Resolved
    from graphlint.config.merge import Problem
    from graphlint.config.outcome import Rewrite


def deployment_finding(
    resolved: Resolved,
    rule: str,
    name: str,
    severity: Severity,
    message: str,
    *,
    span: Span | None = None,
    advice: str | None = None,
    confidence: Confidence | None = None,
    trace: bool = False,
) -> Finding:
    """A finding at `span` (the server command where none is given). `advice` is what to change; `trace` adds the mode's rewrites.

    Confidence is high where every answer to the open questions gives the same mode, else medium.
    """
    place = span if span is not None and span.path else resolved.deployment.span
    sure: Confidence = confidence or ("medium" if resolved.alternatives else "high")
    return Finding(
        rule=rule,
        name=name,
        severity=severity,
        confidence=sure,
        path=place.path,
        line=max(place.line, 1),
        column=max(place.column, 1),
        end_line=place.end_line or place.line,
        end_column=place.end_column,
        symbol=resolved.deployment.name,
        message=shown(message),
        trace=mode_trace(resolved, place) if trace else [],
        fix=Fix("display", shown(advice)) if advice else None,
    )


def mode_trace(resolved: Resolved, place: Span) -> list[TracePoint]:
    """Requested mode and each rewrite, as trace points at the place of the finding."""
    outcome = resolved.outcome
    points = [
        TracePoint(
            place.path, place.line, f"asks for {outcome.requested} ({outcome.requested_by})", place.column, place.end_line, place.end_column
        )
    ]
    for rewrite in outcome.rewrites:
        points.append(
            TracePoint(
                place.path,
                place.line,
                f"{rewrite.before} -> {rewrite.after}: {rewrite.why} ({rewrite.file}, {rewrite.symbol})",
                place.column,
                place.end_line,
                place.end_column,
            )
        )
    return points


def rewrites(resolved: Resolved, *kinds: str) -> list[Rewrite]:
    """The rewrites of these kinds, in order."""
    return [r for r in resolved.outcome.rewrites if r.kind in kinds]


def problems(resolved: Resolved, *kinds: str) -> list[Problem]:
    """The argument problems of these kinds, in order."""
    return [p for p in resolved.request.problems if p.kind in kinds]


def refused_arguments(resolved: Resolved) -> bool:
    """Whether the parser or a validator stops the server, so that no mode is resolved."""
    return any(p.fatal for p in resolved.request.problems)


def setting_span(resolved: Resolved, *names: str) -> Span | None:
    """Where the first of these settings stands; environment variables by their name in capitals."""
    for name in names:
        if name in resolved.deployment.env:
            return resolved.deployment.env[name].span
        span = resolved.request.span_of(name)
        if span is not None:
            return span
    return None
