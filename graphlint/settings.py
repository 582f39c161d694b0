"""Options of one run, after the command line and the configuration file have been merged."""

from __future__ import annotations

from pathlib import Path

import msgspec

from graphlint.finding import Confidence, Severity


class CheckOptions(msgspec.Struct, kw_only=True):
    """What `graphlint check` was asked to do."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    #: report nothing milder than this; None: report all, fail at warnings
    severity: Severity | None = None
    min_confidence: Confidence = "medium"
    #: auto, or the name of an engine vocabulary
    engine: str = "auto"
    #: 0: as many as there are cores
    jobs: int = 0
    cache: bool = True
    rule_packs: tuple[Path, ...] = ()
    respect_gitignore: bool = True

    @property
    def failing_severity(self) -> Severity:
        """Findings at or above this make the exit status 1."""
        return self.severity or "warning"
