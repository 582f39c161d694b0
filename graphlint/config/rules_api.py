"""The public surface for rules about deployments (GL6xx): light, so that `graphlint config` need not load the source engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Literal

import msgspec

from graphlint.config.findings import deployment_finding, mode_trace, problems, refused_arguments, rewrites, setting_span
from graphlint.config.modes import decode_mode, has_full, has_piecewise, mixed_mode
from graphlint.config.versions import V, Version, VersionRange
from graphlint.config.words import shown
from graphlint.finding import Confidence, Finding, Severity

if TYPE_CHECKING:
    from graphlint.config.answer import Resolved
    from graphlint.config.sglang import SglangDeployment

__all__ = [
    "Confidence",
    "DeploymentExample",
    "DeploymentRule",
    "Finding",
    "Severity",
    "V",
    "Version",
    "VersionRange",
    "decode_mode",
    "deployment_finding",
    "has_full",
    "has_piecewise",
    "mixed_mode",
    "mode_trace",
    "problems",
    "refused_arguments",
    "rewrites",
    "setting_span",
    "shown",
]


class DeploymentExample(msgspec.Struct, frozen=True):
    """A deployment that a rule is tested with: a command line or files (path -> text), a release, and facts as for the command."""

    name: str
    source: str | dict[str, str]
    version: str = "0.33.0"
    gpu: str | None = None
    assume: tuple[str, ...] = ()


class DeploymentRule(msgspec.Struct, frozen=True, kw_only=True):
    """One hazard of a deployment's configuration. The module docstring of the rule's file is its page."""

    id: str
    name: str
    summary: str
    severity: Severity
    since: str
    status: Literal["preview", "stable"] = "stable"
    #: never needed: deployments are found by their files, not by tokens of Python source
    tokens: tuple[bytes, ...] = ()
    check: Callable[[Resolved], Iterable[Finding]] | None = None
    check_sglang: Callable[[SglangDeployment], Iterable[Finding]] | None = None
    #: first and last release concerned, empty where open
    min_version: str = ""
    max_version: str = ""
    bad: tuple[DeploymentExample, ...]
    good: tuple[DeploymentExample, ...]
    references: tuple[str, ...] = ()
