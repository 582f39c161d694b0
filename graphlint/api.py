"""The public surface for rules: the only module of the engine that a rule may import."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Literal

import msgspec

from graphlint.evidence import (
    bound_text,
    decided,
    lanes_witness,
    make_finding,
    place,
    point,
    severity_of,
    stale_confidence,
    stale_trace,
    stale_witness,
    symbol_of,
    who_reads,
)
from graphlint.facts.expr import show
from graphlint.finding import Confidence, Edit, Finding, Fix, Severity, TracePoint, Witness

if TYPE_CHECKING:
    from graphlint.project.project import Project
else:
    Project = object  # rules name it in annotations only; the engine need not load for `graphlint rule`

__all__ = [
    "BUFFER_TOKENS",
    "Confidence",
    "Edit",
    "Example",
    "Finding",
    "Fix",
    "Project",
    "Rule",
    "Severity",
    "TracePoint",
    "Witness",
    "bound_text",
    "decided",
    "lanes_witness",
    "make_finding",
    "place",
    "point",
    "severity_of",
    "show",
    "stale_confidence",
    "stale_trace",
    "stale_witness",
    "symbol_of",
    "who_reads",
]

#: what code has that writes, reads or hands on the buffers of a batch: the tokens of every rule that follows them
BUFFER_TOKENS = (
    b"triton.jit",
    b"num_reqs",
    b"raw_bs",
    b"raw_num_token",
    b"req_pool_indices",
    b"out_cache_loc",
    b"query_start_loc",
    b"num_tokens_padded",
    b"num_scheduled_tokens",
    b"cudagraph",
    b"cuda_graph",
    b"CUDAGraph",
)


class Example(msgspec.Struct, frozen=True):
    """Source that a rule is tested with: one module, or several (path -> source). `buffers` are those the findings must name."""

    name: str
    source: str | dict[str, str]
    buffers: tuple[str, ...] = ()


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One hazard. The module docstring of the rule's file is its page."""

    id: str
    name: str
    summary: str
    severity: Severity
    since: str
    status: Literal["preview", "stable"] = "stable"
    #: byte strings; a file with none of them cannot matter to this rule
    tokens: tuple[bytes, ...]
    check: Callable[[Project], Iterable[Finding]]
    bad: tuple[Example, ...]
    good: tuple[Example, ...]
    #: ids of real bugs of this kind, e.g. ("vllm-project/vllm#39773",)
    references: tuple[str, ...] = ()
