"""The joined project: what rules see."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from graphlint.facts.model import FileFacts
from graphlint.finding import RunError, Stats
from graphlint.project.buffers import Buffers
from graphlint.project.counts import Counts
from graphlint.project.effects import Effects
from graphlint.project.expand import Expander
from graphlint.project.index import Index
from graphlint.project.lifetime import StaleTail, stale_tails
from graphlint.project.metadata import Decision, MetadataFlow
from graphlint.project.regions import Regions
from graphlint.project.timeline import Timelines
from graphlint.project.types import Types
from graphlint.project.views import Views


class Project:
    """All facts of a set of files, joined on demand."""

    def __init__(self, files: Iterable[FileFacts], *, engine: str = "auto", errors: list[RunError] | None = None, stats: Stats | None = None) -> None:
        self.files = sorted(files, key=lambda file: file.path)
        self.engine = engine
        self.errors = errors or []
        self.stats = stats or Stats(files=len(self.files))

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
        counts.captured = set(self.regions.captured)
        return counts

    @cached_property
    def buffers(self) -> Buffers:
        """Storage identities."""
        return Buffers(self.index, self.types, self.counts)

    @cached_property
    def expander(self) -> Expander:
        """Call summaries."""
        return Expander(self.index, self.types, self.views, self.effects)

    @cached_property
    def stale_tails(self) -> list[StaleTail]:
        """Buffers read beyond what a step wrote."""
        return list(stale_tails(self.timelines))

    @cached_property
    def metadata(self) -> list[Decision]:
        """Calls that decide the token count of attention metadata."""
        return MetadataFlow(self.index, self.types, self.views, self.effects, self.regions).decisions()

    @cached_property
    def timelines(self) -> Timelines:
        """Ordered accesses of every step."""
        return Timelines(self.index, self.types, self.views, self.counts, self.effects, self.expander, self.buffers, self.regions)
