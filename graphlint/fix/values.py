"""What the lanes of the padding are to hold, by what the buffer means."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import NamedTuple

from graphlint.finding import Finding

_MEANING = re.compile(r"\((kv write slot|state index|gather index|indptr|length|mask|data)\)")
_PAD_NAME = re.compile(r"\b(PAD_SLOT_ID|PAD_ID|NULL_BLOCK_ID|PADDING_ID|[A-Z_]*PAD[A-Z_]*_ID)\b")
_PAD_STORE = re.compile(r"tl\.store\(\s*\(?(\w+)[^,]*,\s*(-?\w+)\s*,\s*mask")
_PAD_FILL = re.compile(r"(\w+)(?:\.np|\.cpu|\.gpu)?\[[^\]:]+:[^\]]*\]\.(?:fill_?\((-?\w+)\)|zero_\(\))")


class Pad(NamedTuple):
    """`text` is the value as source; `sure` says whether it is known to be the one the readers expect."""

    text: str
    sure: bool


def meaning_of(finding: Finding, name: str = "") -> str:
    """What the buffer means: as the finding says, else by name."""
    found = _MEANING.search(finding.message)
    if re.search(_STATE, name, re.IGNORECASE):
        return "state index"  # padding that takes state 0 would update a live request's
    if found:
        return found[1]
    for meaning, words in _WORDS:
        if re.search(words, name, re.IGNORECASE):
            return meaning
    return "data"


_STATE = r"idx_mapping|state_ind|req_pool_ind"
_WORDS = (
    ("indptr", r"start_loc|indptr|cu_?seqlen|cu_"), ("kv write slot", r"slot|out_cache_loc"), ("length", r"len|num_|count"),
    ("state index", r"idx_mapping|state|req_pool"), ("gather index", r"ind(ex|ices)|idx|table|block"), ("mask", r"mask|is_|valid"),
)


def pad_value(
    finding: Finding, name: str, lines: Sequence[str], stored: ast.expr | None = None, params: Sequence[str] | None = None
) -> Pad:
    """The pad value of anything but offsets: what padding of the same name holds elsewhere in the file, the fallback of the masked load
    that is stored, the engine's pad id, else the neutral value of the meaning.

    `params` are those of the kernel that is to store it: a kernel reads no other names.
    """
    meaning = meaning_of(finding, name)
    if meaning == "mask":
        return Pad("True" if re.search(r"pad", name, re.IGNORECASE) else "False", True)
    text = "\n".join(line for number, line in enumerate(lines, 1) if number != finding.line)
    for pattern in (_PAD_STORE, _PAD_FILL):
        for found in pattern.finditer(text):
            if _stem(found[1]) == _stem(name) and _constant(found[2] or "0") and _readable(found[2] or "0", params):
                return Pad(found[2] or "0", True)
    fallback = _fallback(stored)
    if fallback is not None and _readable(fallback, params):
        return Pad(fallback, True)
    if meaning == "kv write slot":
        named = next((one for one in (params if params is not None else _PAD_NAME.findall(text)) if _PAD_NAME.fullmatch(one)), None)
        return Pad(named, True) if named else Pad("-1", False)
    if meaning == "state index":
        return Pad("-1", False)
    return Pad("0", meaning in ("length", "gather index"))


def _stem(name: str) -> str:
    return re.sub(r"^(out|draft|eagle|dst)_|(_ptrs?|_buffer|_np|_cpu|_gpu)$", "", name.lower())


def _readable(value: str, params: Sequence[str] | None) -> bool:
    """A number, or a name that the kernel has."""
    return params is None or value in params or not _PAD_NAME.fullmatch(value)


def _constant(text: str) -> bool:
    return bool(re.fullmatch(r"-?\d+|True|False", text) or _PAD_NAME.fullmatch(text))


def _fallback(stored: ast.expr | None) -> str | None:
    """`other=` of the load, or the constant arm of the `where`, that is stored."""
    if not isinstance(stored, ast.Call):
        return None
    for keyword in stored.keywords:
        if keyword.arg == "other" and _constant(ast.unparse(keyword.value)):
            return ast.unparse(keyword.value)
    if ast.unparse(stored.func).endswith(".where") and len(stored.args) == 3 and _constant(ast.unparse(stored.args[2])):
        return ast.unparse(stored.args[2])
    return None
