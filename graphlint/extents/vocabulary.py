"""Names of counts, per engine, as data: `data/<engine>.toml`. A name is evidence only where its definition says nothing."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

import msgspec

from graphlint.extents.algebra import Atom, State, Unit

DATA = Path(__file__).parent / "data"


class Vocabulary(msgspec.Struct, frozen=True):
    """What an engine calls its counts.

    names: local, parameter or attribute name -> (unit, state); fields: "Type.field" -> (unit, state), `*` for a suffix of the type's name;
    patterns: regular expressions tried in order after `names`; per_request: names of tokens-per-request factors; pad_values: sentinel
    names; steps: functions that run once a step.
    """

    engine: str
    names: dict[str, Atom]
    fields: dict[tuple[str, str], Atom]
    patterns: tuple[tuple[re.Pattern[str], Atom], ...]
    per_request: frozenset[str]
    offsets: tuple[str, ...]
    meanings: tuple[tuple[str, re.Pattern[str]], ...]
    #: parameters of functions that run at capture, and rows of tensors in fields, where nothing else tells
    at_capture: dict[str, Atom]
    rows: dict[tuple[str, str], Atom]

    def name(self, name: str) -> Atom | None:
        """The count that a bare name or attribute stands for."""
        found = self.names.get(name)
        if found is not None:
            return found
        for pattern, atom in self.patterns:
            if pattern.fullmatch(name):
                return Atom(atom.unit, atom.state, name)
        return None

    def field(self, type_name: str, field: str) -> Atom | None:
        """The count held by a field of a known type (`*Suffix` entries match the end of the type's name)."""
        found = self.fields.get((type_name, field))
        if found is not None:
            return found
        for (name, key), atom in self.fields.items():
            if key == field and name.startswith("*") and type_name.endswith(name[1:]):
                return atom
        return None

    def meaning(self, buffer: str) -> str:
        """What a buffer of this name holds: kv write slot, state index, gather index, length, indptr or data."""
        for meaning, pattern in self.meanings:
            if pattern.search(buffer):
                return meaning
        return "data"


def _atom(text: str, tag: str) -> Atom:
    state, unit = text.split()
    return Atom(unit, state, tag)  # type: ignore[arg-type]


def _read(engine: str) -> dict[str, dict[str, object]]:
    raw: dict[str, dict[str, object]] = msgspec.toml.decode((DATA / f"{engine}.toml").read_bytes())
    return raw


@lru_cache
def load_vocabulary(engine: str) -> Vocabulary:
    """The vocabulary of `engine`; "auto" joins all (their names do not contradict each other, except where a file says so)."""
    names: dict[str, Atom] = {}
    fields: dict[tuple[str, str], Atom] = {}
    patterns: list[tuple[re.Pattern[str], Atom]] = []
    per_request: set[str] = set()
    offsets: list[str] = []
    meanings: list[tuple[str, re.Pattern[str]]] = []
    at_capture: dict[str, Atom] = {}
    rows: dict[tuple[str, str], Atom] = {}
    for part in ["common", *(["vllm", "sglang"] if engine == "auto" else [engine])]:
        if not (DATA / f"{part}.toml").exists():
            continue
        raw = _read(part)
        for name, text in raw.get("names", {}).items():
            names[name] = _atom(str(text), name)
        for table, key, text in ((t, k, v) for t, part_of in ((fields, "fields"), (rows, "rows")) for k, v in raw.get(part_of, {}).items()):
            owner, field = key.rsplit(".", 1)
            table[owner, field] = _atom(str(text), key)
        for name, text in raw.get("at_capture", {}).items():
            at_capture[name] = _atom(str(text), f"captured {name}")
        for pattern, text in raw.get("patterns", {}).items():
            patterns.append((re.compile(pattern), _atom(str(text), pattern)))
        per_request.update(raw.get("factors", {}).get("tokens_per_request", []))  # type: ignore[arg-type]
        offsets.extend(raw.get("offsets", {}).get("names", []))  # type: ignore[arg-type]
        meanings.extend((key, re.compile(str(text))) for key, text in raw.get("meanings", {}).items())
    return Vocabulary(engine, names, fields, tuple(patterns), frozenset(per_request), tuple(offsets), tuple(meanings), at_capture, rows)


__all__ = ["Vocabulary", "load_vocabulary", "State", "Unit"]
