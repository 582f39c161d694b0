"""Where token counts enter attention metadata: parameters that end up in a metadata constructor, and the calls that decide them."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import NamedTuple

from graphlint.extents import PADDED
from graphlint.facts.expr import Expr, strip
from graphlint.facts.model import Event
from graphlint.project.counts import Counts
from graphlint.project.effect import CallSite, Site
from graphlint.project.effects import Effects
from graphlint.project.index import FunctionDef, Index
from graphlint.project.modes import mentions_full
from graphlint.project.regions import Regions, runs_once
from graphlint.project.types import Types
from graphlint.project.views import Views

#: classes whose instances are attention metadata of a batch
METADATA_CLASS = re.compile(r".*(AttentionMetadata|AttnMetadata)$")
#: fields of such classes that hold the number of tokens the kernels may touch
TOKEN_FIELDS = frozenset({"num_actual_tokens", "num_tokens", "num_input_tokens"})


class Decision(NamedTuple):
    """A call at which the token count of metadata is decided: `value` in the terms of `function`; `sink` is where it ends up."""

    function: FunctionDef
    site: Site
    guards: tuple[Expr, ...]
    value: Expr
    callee: str
    parameter: str
    sink: Site


class MetadataFlow:
    """Follows token counts backwards from metadata constructors through parameters."""

    def __init__(self, index: Index, types: Types, views: Views, effects: Effects, regions: Regions) -> None:
        self.index = index
        self.types = types
        self.views = views
        self.effects = effects
        self.regions = regions

    def decisions(self) -> list[Decision]:
        """Every call where a token count that reaches metadata is not just handed on by a parameter."""
        callers: dict[str, list[tuple[FunctionDef, CallSite]]] = defaultdict(list)
        sinks: dict[tuple[str, str], Site] = {}
        work: list[tuple[str, str]] = []
        found: list[Decision] = []
        for function in self.index.functions.values():
            if function.fact.opaque:
                continue
            for item in self.effects.of(function, function.owner):
                if isinstance(item, CallSite):
                    callers[item.function].append((function, item))
            for event in function.fact.events:
                if event.kind == "call":
                    self._constructor(function, event, sinks, work, found)
        while work:
            callee, parameter = work.pop()
            for function, site in callers.get(callee, ()):
                bound = self.views.bind_arguments(callee, site.call, self.views.receiver(site.call))
                value = bound.get(("param", callee, parameter))
                if value is None or value == ("const", None):
                    continue
                self._consider(function, value, site.site, site.guards, callee, parameter, sinks[callee, parameter], sinks, work, found)
        return found

    def _constructor(
        self,
        function: FunctionDef,
        event: Event,
        sinks: dict[tuple[str, str], Site],
        work: list[tuple[str, str]],
        found: list[Decision],
    ) -> None:
        target = self.types.callee(event.a[1], function.owner)
        if target is None or target[0] != "class":
            return
        name = self.index.classes[target[1]].name
        if not METADATA_CLASS.match(name):
            return
        site = Site(function.path, event.span, function.id, event.guards)
        for key, value in event.a[3]:
            if key in TOKEN_FIELDS:
                self._consider(function, value, site, event.guards, name, key, site, sinks, work, found)

    def _consider(
        self,
        function: FunctionDef,
        value: Expr,
        site: Site,
        guards: tuple[Expr, ...],
        callee: str,
        parameter: str,
        sink: Site,
        sinks: dict[tuple[str, str], Site],
        work: list[tuple[str, str]],
        found: list[Decision],
    ) -> None:
        inner = strip(value)
        if inner[0] == "param" and inner[1] == function.id:
            key = (function.id, inner[2])
            if key not in sinks:
                sinks[key] = sink
                work.append(key)
            return
        if runs_once(function.fact.name) or function.id in self.regions.captured:
            return
        found.append(Decision(function, site, guards, value, callee, parameter, sink))


def padded_in_any_mode(decision: Decision, counts: Counts) -> bool:
    """The value is a padded token count with no test for the graph mode: neither around the call nor in the value."""
    if any(mentions_full(guard) for guard in decision.guards):
        return False
    value = strip(decision.value)
    if value[0] in ("if", "phi", "or"):
        return False
    owner = decision.function.owner
    extent = counts.of(decision.value, owner, decision.function.module, "lower")
    return extent.known and extent.unit == "tokens" and extent.state == PADDED
