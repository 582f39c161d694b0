"""A rule pack to drive the shell with: its rules report each assignment to a name that starts with a word."""

from __future__ import annotations

import textwrap

import pytest

RULE = r'''
"""Reports names that start with {word}.

## What it does
Nothing useful.
"""
import re
from graphlint.api import Finding, Rule

def check(project):
    for file in project.files:
        for number, line in enumerate(open(file.path).read().split("\n"), 1):
            match = re.match(r"\s*({word}\w*)", line)
            if match:
                yield Finding(rule="{id}", name="{name}", severity="{severity}", confidence="{confidence}", path=file.path, line=number,
                              column=match.start(1) + 1, end_line=number, end_column=match.end(1) + 1, symbol="f",
                              message="assigns " + match[1], buffer=match[1])
    {tail}

RULE = Rule(id="{id}", name="{name}", summary="Reports {word} names.", severity="{severity}", since="0.1.0", tokens=(b"{word}",),
            check=check, bad=(), good=())
'''
DEFAULTS = {"id": "XX101", "name": "bad-name", "word": "bad", "severity": "error", "confidence": "high", "tail": ""}


@pytest.fixture
def pack(tree):
    """Write a rule pack and the configuration that names it. A rule is its source, or what differs from `DEFAULTS`."""

    def write(*rules):
        tree({"graphlint.toml": 'rule-packs = ["house"]\n'})
        for number, rule in enumerate(rules):
            source = rule if isinstance(rule, str) else textwrap.dedent(RULE).strip().format(**(DEFAULTS | rule))
            tree({f"house/family/rule_{number}.py": source})

    return write
