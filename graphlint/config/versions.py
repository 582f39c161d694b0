"""vLLM versions: parsing, ranges, and finding them in image tags and requirements."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple


class Version(NamedTuple):
    """Release numbers, compared as numbers; `0.10.1.1` is newer than `0.10.1`."""

    parts: tuple[int, ...]

    def __str__(self) -> str:
        return ".".join(map(str, self.parts))


_VERSION = re.compile(r"^v?(\d+(?:\.\d+){1,3})")
#: a release candidate or development build counts as the release it leads to
_LOOSE = re.compile(r"(?<![\d.])v?(\d+\.\d+(?:\.\d+){0,2})")


@lru_cache(maxsize=4096)
def parse_version(text: str) -> Version:
    """`0.19.1`, `v0.19.1`, `0.19.1rc2`, `0.20` (read as 0.20.0). Raises ValueError for anything else."""
    match = _VERSION.match(text.strip())
    if match is None:
        raise ValueError(f"not a version: {text!r}")
    parts = tuple(int(p) for p in match.group(1).split("."))
    return Version(parts if len(parts) > 2 else (*parts, 0))


def V(text: str) -> Version:
    """Shorthand for version literals in gates: `V("0.12.0")`."""
    return parse_version(text)


class VersionRange(NamedTuple):
    """`low <= version < high`; None is open."""

    low: Version | None = None
    high: Version | None = None

    def __contains__(self, version: object) -> bool:
        assert isinstance(version, Version)
        return (self.low is None or version >= self.low) and (self.high is None or version < self.high)

    def __str__(self) -> str:
        if self.low and self.high:
            return f"{self.low} to before {self.high}"
        return f"{self.low} and later" if self.low else f"before {self.high}" if self.high else "all"


_IMAGE = re.compile(r"(?:^|[/\"'])(?P<name>[\w.-]*(?P<engine>vllm|sglang)[\w.-]*):(?P<tag>[\w.-]+)")
_REQUIREMENT = re.compile(r"(?<![\w.-])(?P<engine>vllm|sglang)(?:\[[^\]]*\])?\s*===?\s*(?P<version>\d+\.\d+[\w.]*)")


def version_in_image(image: str) -> tuple[str, Version] | None:
    """(engine, version) of `vllm/vllm-openai:v0.19.1-cu130` and the like; None for `latest`, digests and other images."""
    match = _IMAGE.search(image)
    if match is None:
        return None
    found = _LOOSE.search(match.group("tag"))
    if found is None:
        return None
    return match.group("engine"), parse_version(found.group(1))


def version_in_requirement(text: str) -> tuple[str, Version] | None:
    """(engine, version) of a pinned requirement such as `pip install vllm==0.20.2`."""
    match = _REQUIREMENT.search(text)
    if match is None:
        return None
    return match.group("engine"), parse_version(match.group("version"))
