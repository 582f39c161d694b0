"""Loads deployment rules by path: the built-in family and those of a user's packs."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from graphlint.config.rules_api import DeploymentRule
from graphlint.finding import RunError


def built_in_folder() -> Path:
    """`graphlint/_rules/deployment` in an installed wheel, `rules/deployment` beside the package in a checkout."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "_rules" / "deployment"
    return installed if installed.is_dir() else package.parent / "rules" / "deployment"


@lru_cache(maxsize=8)
def load_rules(packs: tuple[Path, ...] = ()) -> tuple[tuple[DeploymentRule, ...], tuple[RunError, ...]]:
    """Deployment rules by id, and the files that could not be loaded."""
    rules: dict[str, DeploymentRule] = {}
    errors: list[RunError] = []
    folder = built_in_folder()
    files = sorted(folder.glob("*.py")) if folder.is_dir() else []
    for pack in packs:
        files += [p for p in sorted(pack.rglob("*.py")) if b"DeploymentRule" in p.read_bytes()]
    for path in files:
        if path.name.startswith("_"):
            continue
        rule = _load(path)
        if isinstance(rule, RunError):
            errors.append(rule)
        else:
            rules[rule.id] = rule
    return tuple(rules[i] for i in sorted(rules)), tuple(errors)


def _load(path: Path) -> DeploymentRule | RunError:
    name = f"graphlint_rules.deployment.{re.sub(r'[^A-Za-z0-9]', '_', str(path.resolve()))}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        return RunError(str(path), "rule", "cannot be loaded as a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # noqa: BLE001  a rule file may raise anything; the others still run
        del sys.modules[name]
        return RunError(str(path), "rule", f"the rule cannot be loaded: {type(error).__name__}: {error}")
    rule = getattr(module, "RULE", None)
    if not isinstance(rule, DeploymentRule):
        return RunError(str(path), "rule", "the file defines no `RULE = DeploymentRule(...)`")
    return rule


def selected(rules: Sequence[DeploymentRule], select: Sequence[str], ignore: Sequence[str]) -> list[DeploymentRule]:
    """Rules whose id, family prefix or name is selected and not ignored; the longer of two selectors wins."""

    def strength(rule: DeploymentRule, wanted: Sequence[str]) -> int:
        hits = [len(w) if rule.id.startswith(w.upper()) else len(rule.id) if w.lower() == rule.name else 0 for w in wanted]
        return max([h for h in hits if h] + [0 if "ALL" in wanted else -1])

    return [
        r
        for r in rules
        if (strength(r, select) if select else 0) > strength(r, ignore) or (not ignore and (not select or strength(r, select) >= 0))
    ]
