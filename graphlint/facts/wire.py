"""Facts as bytes: every value once (hash-consed), so that shared expressions stay shared, in msgpack, which runs no code when read."""

from __future__ import annotations

from typing import Any

import msgspec

from graphlint.facts.kernels import Deref, ExitPath, KernelModel, Segment, Span
from graphlint.facts.model import Binding, Class, Event, FileFacts, Function, Param

_STRUCTS: tuple[type[msgspec.Struct], ...] = (
    Span, Segment, ExitPath, Deref, KernelModel, Event, Param, Binding, Function, Class, FileFacts,
)
_CODES = {cls: code for code, cls in enumerate(_STRUCTS)}
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[Any])


def encode(facts: FileFacts) -> bytes:
    """`facts` as bytes.

    A table of rows: a scalar stands for itself, a tuple is [-1, row, ...] and a struct [code, row, ...], rows by their number.
    """
    rows: list[Any] = []
    known: dict[Any, int] = {}
    by_id: dict[int, int] = {}

    def add(value: Any) -> int:
        if isinstance(value, (tuple, msgspec.Struct)):
            seen = by_id.get(id(value))
            if seen is not None:
                return seen
            if isinstance(value, tuple):
                row = (-1, *map(add, value))
            else:
                row = (_CODES[type(value)], *(add(getattr(value, name)) for name in value.__struct_fields__))
            key: Any = row
        else:
            row = value
            key = (type(value), value)
        number = known.get(key)
        if number is None:
            number = known[key] = len(rows)
            rows.append(row)
        if not isinstance(value, (str, int, float, bool, type(None))):
            by_id[id(value)] = number
        return number

    add(facts)
    return _encoder.encode(rows)


def decode(data: bytes) -> FileFacts:
    """Facts of bytes that `encode` made. Raises `msgspec.DecodeError`, `IndexError` or `TypeError` on anything else."""
    out: list[Any] = []
    push = out.append
    for row in _decoder.decode(data):
        if type(row) is list:
            code = row[0]
            parts = [out[number] for number in row[1:]]
            push(tuple(parts) if code < 0 else _STRUCTS[code](*parts))
        else:
            push(row)
    facts = out[-1]
    if not isinstance(facts, FileFacts):
        raise TypeError("not the facts of a file")
    return facts
