"""What the bundled releases knew, over time: options, environment names, fields, methods. Read only when something is unknown."""

from __future__ import annotations

from functools import lru_cache

from graphlint.config.tables import bundled_versions, load_release
from graphlint.config.versions import Version

Presence = dict[str, tuple[Version, ...]]


@lru_cache(maxsize=1)
def _all() -> tuple[Presence, Presence, Presence, Presence]:
    flags: dict[str, list[Version]] = {}
    dests: dict[str, list[Version]] = {}
    env: dict[str, list[Version]] = {}
    backends: dict[str, list[Version]] = {}
    for version in bundled_versions():
        tables = load_release(version)
        for option, flag in tables.flags.items():
            flags.setdefault(option, []).append(version)
            if not option.startswith("--no-"):
                dests.setdefault(flag.dest, []).append(version)
        for name in tables.env:
            env.setdefault(name, []).append(version)
        for name in tables.backends:
            backends.setdefault(name, []).append(version)
    return (
        {k: tuple(v) for k, v in flags.items()},
        {k: tuple(dict.fromkeys(v)) for k, v in dests.items()},
        {k: tuple(v) for k, v in env.items()},
        {k: tuple(v) for k, v in backends.items()},
    )


def option_history(option: str) -> tuple[Version, ...]:
    """Releases that have this command-line option."""
    return _all()[0].get(option, ())


def flag_history() -> Presence:
    """Engine argument -> releases that have it."""
    return _all()[1]


def env_history(name: str) -> tuple[Version, ...]:
    """Releases that read this environment variable."""
    return _all()[2].get(name, ())


def backend_history(name: str) -> tuple[Version, ...]:
    """Releases whose registry has this attention backend."""
    return _all()[3].get(name, ())


def lifetime(known: tuple[Version, ...], at: Version) -> str:
    """`removed after 0.14.1`, `new in 0.22.0`, or empty where no release knows it."""
    if not known:
        return ""
    if known[-1] < at:
        return f"the last release that has it is {known[-1]}"
    later = [v for v in known if v > at]
    return f"new in {later[0]}" if later else ""
