"""The joined project: what rules see."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property, partial

from graphlint.facts.model import FileFacts
from graphlint.finding import RunError, Stats
from graphlint.project.buffers import Buffers
from graphlint.project.counts import Counts
from graphlint.project.effects import Effects
from graphlint.project.exits import SkippedOutput, skipped_outputs
from graphlint.project.expand import Expander
from graphlint.project.index import Index
from graphlint.project.kernels import prepare
from graphlint.project.lifetime import StaleTail, stale_tails
from graphlint.project.metadata import Decision, MetadataFlow, padded_in_any_mode
from graphlint.project.modes import GraphManager, ShadowedMode, graph_managers, shadowed_modes
from graphlint.project.regions import Regions
from graphlint.project.timeline import Timelines
from graphlint.project.types import Types
from graphlint.project.units import UnitMismatch, unit_mismatches
from graphlint.project.views import Views


class Project:
    """All facts of a set of files, joined on demand."""

    def __init__(
        self,
        files: Iterable[FileFacts],
        *,
        engine: str = "auto",
        errors: list[RunError] | None = None,
        stats: Stats | None = None,
        jobs: int = 1,
        cache: bool = False,
    ) -> None:
        self.files = sorted(files, key=lambda file: file.path)
        self.engine = engine
        self.errors = errors or []
        self.stats = stats or Stats(files=len(self.files))
        self._prepare = partial(prepare, jobs=jobs, cache=cache)

    @cached_property
    def index(self) -> Index:
        """Definitions."""
        return Index(self.files)

    @cached_property
    def types(self) -> Types:
        """Classes of expressions."""
        return Types(self.index)

    @cached_property
    def views(self) -> Views:
        """Storages of expressions."""
        return Views(self.index, self.types)

    @cached_property
    def effects(self) -> Effects:
        """Accesses of single functions."""
        return Effects(self.index, self.types)

    @cached_property
    def regions(self) -> Regions:
        """Capture roots."""
        return Regions(self.index, self.types, self.effects)

    @cached_property
    def counts(self) -> Counts:
        """Extents of expressions."""
        counts = Counts(self.index, self.types, self.views, self.engine)
        counts.captured = set(self.regions.captured) | self.regions.asking | self.regions.blocks
        return counts

    @cached_property
    def buffers(self) -> Buffers:
        """Storage identities."""
        return Buffers(self.index, self.types, self.counts)

    @cached_property
    def expander(self) -> Expander:
        """Call summaries."""
        return Expander(self.index, self.types, self.views, self.effects, self._prepare)

    @cached_property
    def stale_tails(self) -> list[StaleTail]:
        """Buffers read beyond what a step wrote."""
        return list(stale_tails(self.timelines))

    @cached_property
    def skipped_outputs(self) -> list[SkippedOutput]:
        """Kernel exits that leave outputs of a lane unwritten."""
        return list(skipped_outputs(self.index, self.timelines))

    @cached_property
    def graph_managers(self) -> list[GraphManager]:
        """Constructions of graph managers with their modes."""
        return list(graph_managers(self.index, self.types, self.views))

    @cached_property
    def shadowed_modes(self) -> list[ShadowedMode]:
        """Mode parameters overwritten from the configuration."""
        return list(shadowed_modes(self.index))

    @cached_property
    def unit_mismatches(self) -> list[UnitMismatch]:
        """Per-request buffers sliced by tokens."""
        return list(unit_mismatches(self.timelines))

    @cached_property
    def padded_metadata(self) -> list[Decision]:
        """Calls that make the token count of attention metadata padded in modes other than FULL."""
        flow = MetadataFlow(self.index, self.types, self.views, self.effects, self.regions)
        return [decision for decision in flow.decisions() if padded_in_any_mode(decision, self.counts)]

    @cached_property
    def timelines(self) -> Timelines:
        """Ordered accesses of every step."""
        return Timelines(self.index, self.types, self.views, self.counts, self.effects, self.expander, self.buffers, self.regions)
