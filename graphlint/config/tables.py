"""What one vLLM release says about itself: backends and their declared graph support, defaults, flags, fields, environment names.

The same extractor (`graphlint.config.extract`) fills these from a checkout and makes the bundled files under `data/releases/`.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import resources
from typing import Literal

import msgspec

from graphlint.config.versions import Version, parse_version

#: `off` is a switch that sets its field to false
FlagKind = Literal["value", "flag", "off", "bool", "list", "json", "optional"]


class Support(msgspec.Struct, frozen=True, omit_defaults=True):
    """One level a builder may declare, the conditions for it (all must hold; source text), and where it says so."""

    level: str
    when: tuple[str, ...] = ()
    at: str = ""


class Backend(msgspec.Struct, frozen=True, omit_defaults=True):
    """An attention or Mamba backend: the class behind the enum name and what its metadata builder declares."""

    cls: str = ""
    builder: str = ""
    support: tuple[Support, ...] = ()
    kind: Literal["attention", "mamba", "builder"] = "attention"
    mla: bool = False
    sparse: bool = False
    #: source text over `capability`, empty where the class accepts every device
    capability: str = ""
    #: whether the implementation returns the softmax sum that decode context parallelism needs
    lse: bool | None = None
    #: whether the builder takes variable-length decode under decode context parallelism
    dcp_varlen: bool = False
    note: str = ""


class Priority(msgspec.Struct, frozen=True, omit_defaults=True):
    """An ordered list of backend names that the platform tries under these conditions."""

    when: tuple[str, ...]
    backends: tuple[str, ...]


class Flag(msgspec.Struct, frozen=True, omit_defaults=True):
    """A command-line option: the field it sets and how many words it takes."""

    dest: str
    kind: FlagKind = "value"
    choices: tuple[str, ...] = ()


class Tables(msgspec.Struct, frozen=True, omit_defaults=True):
    """Everything the configuration checks take from one release."""

    version: str
    backends: dict[str, Backend] = {}
    #: builders behind no enum name that join the minimum (indexers, chunked local attention, ...)
    builders: dict[str, Backend] = {}
    #: optimisation level -> default mode; empty before 0.12.0
    optimization: dict[str, str] = {}
    attention_ops: tuple[str, ...] = ()
    break_points: tuple[str, ...] = ()
    breakable_archs: tuple[str, ...] = ()
    breakable_archs_rocm: tuple[str, ...] = ()
    v2_archs: tuple[str, ...] = ()
    v2_excluded_rocm: tuple[str, ...] = ()
    priorities: tuple[Priority, ...] = ()
    piecewise_connectors: dict[str, str] = {}
    flags: dict[str, Flag] = {}
    fields: dict[str, tuple[str, ...]] = {}
    env: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()
    #: architecture -> traits read off its model class: hybrid, attention-free, encoder-decoder, pooling, compiled, multimodal, mla
    architectures: dict[str, tuple[str, ...]] = {}


@lru_cache(maxsize=1)
def bundled_versions() -> tuple[Version, ...]:
    """Releases with a bundled table, oldest first."""
    folder = resources.files("graphlint.config").joinpath("data").joinpath("releases")
    return tuple(sorted(parse_version(entry.name[:-5]) for entry in folder.iterdir() if entry.name.endswith(".json")))


@lru_cache(maxsize=48)
def load_release(version: Version) -> Tables:
    """The bundled table of exactly this release. Raises FileNotFoundError where there is none."""
    path = resources.files("graphlint.config").joinpath("data").joinpath("releases").joinpath(f"{version}.json")
    return msgspec.json.decode(path.read_bytes(), type=Tables)


def nearest_release(version: Version) -> Version | None:
    """The newest bundled release not newer than `version`; None below the modelled range."""
    older = [known for known in bundled_versions() if known <= version]
    return older[-1] if older else None
