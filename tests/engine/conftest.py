"""Runs engines of `fixtures/engines` through the command line."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # the helper module, however pytest imports these tests

from engine_fixtures import Outcome, Reported, engine_files

from graphlint import registry

LOADED = registry.load()


@pytest.fixture(autouse=True)
def rules_loaded_once(monkeypatch):
    """No test here brings rules of its own, and loading the pack takes longer than analysing a small engine."""
    monkeypatch.setattr(registry, "load", lambda packs=(): LOADED)


@pytest.fixture
def check(tree, graphlint) -> Callable[..., Outcome]:
    """Check an engine by name, or files; `edits` change it first. The engines and their edits must be valid Python."""

    def run(engine: str | Mapping[str, str], edits: Mapping[str, str] | None = None, *options: str) -> Outcome:
        files = engine_files(engine, edits) if isinstance(engine, str) else dict(engine)
        for path, text in files.items():
            compile(text, path, "exec")
        tree(files)
        result = graphlint("check", ".", "--no-cache", "--jobs", "1", "--output-format", "json", *options)
        report = json.loads(result.stdout)
        assert report["errors"] == []
        reported = [
            Reported(f["rule"], f["buffer"], files[f["path"]].splitlines()[f["line"] - 1].strip()) for f in report["findings"]
        ]
        return Outcome(reported, report["findings"], report["errors"], report["stats"])

    return run


@pytest.fixture
def facts(tree, graphlint) -> Callable[..., dict]:
    """`graphlint facts` of a place in an engine, as data."""

    def run(engine: str | Mapping[str, str], place: str, edits: Mapping[str, str] | None = None) -> dict:
        tree(engine_files(engine, edits) if isinstance(engine, str) else engine)
        result = graphlint("facts", place, "--output-format", "json", env={"GRAPHLINT_CACHE_DIR": "cache"})
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout)

    return run
