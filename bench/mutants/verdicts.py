"""Which mutants harm a running engine and which do not, as read from the source of the release."""

from __future__ import annotations

from typing import Literal, get_args

from bench.data import BENCH
from bench.releases import Release

Verdict = Literal["harmful", "redundant"]


def verdicts(release: Release) -> dict[str, Verdict]:
    """Mutant id -> verdict; empty where nobody has read the release's mutants. ValueError names the file and line of a slip."""
    path = BENCH / "mutants" / "lists" / f"{release}.txt"
    if not path.is_file():
        return {}
    found: dict[str, Verdict] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        word, _, mutant = line.strip().partition(" ")
        if word not in get_args(Verdict) or mutant.count("::") != 2:
            raise ValueError(f"{path}:{number}: expected `harmful ID` or `redundant ID`, got {line!r}")
        if mutant in found:
            raise ValueError(f"{path}:{number}: {mutant} is listed twice")
        found[mutant] = "harmful" if word == "harmful" else "redundant"
    return found
