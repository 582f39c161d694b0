"""Runs the reproductions of kernels/: each shows one fault, its correction, and an oracle that tells them apart."""

from __future__ import annotations

import ast
import datetime
import importlib.util
import json
import tempfile
from pathlib import Path
from typing import Any

import msgspec

import graphlint
from graphlint.validate import sanitizer
from graphlint.validate.sandbox import Limits, Outcome, run
from graphlint.validate.verdict import Evidence, Observation, Verdict, settle, unsupported

_WORKER = "graphlint.validate.scenario_worker"


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """One module of kernels/, read without importing it. `page` is its docstring."""

    name: str
    title: str
    rules: list[str]
    faulty: str
    corrected: str
    cuda_needs: list[str]
    path: str = ""
    page: str = ""
    #: has `crash(bench, variant)`: a process that dies with the faulty variant and ends well with the corrected one
    crashes: bool = False
    #: has `memcheck(bench, variant)`: what compute-sanitizer is to look at
    memcheck: bool = False


def folder() -> Path:
    """Where the reproductions are: beside the package in a checkout, inside it when installed."""
    package = Path(graphlint.__file__).resolve().parent
    inside = package / "_kernels"
    return inside if inside.is_dir() else package.parent / "kernels"


def load(path: Path) -> Scenario | None:
    """The scenario a file declares as `SCENARIO = {...}`, or None."""
    tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    found: dict[str, Any] | None = None
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "SCENARIO":
            found = ast.literal_eval(node.value)
    if found is None:
        return None
    more = {"path": str(path), "page": ast.get_docstring(tree) or "", "crashes": "crash" in functions, "memcheck": "memcheck" in functions}
    return msgspec.convert({**found, **more}, Scenario)


def available() -> list[Scenario]:
    """All scenarios, by name."""
    found = [load(path) for path in sorted(folder().glob("*.py"))]
    return sorted((scenario for scenario in found if scenario is not None), key=lambda scenario: scenario.name)


def today() -> str:
    """Date and time of now in UTC, to the second."""
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


def evidence_of(outcome: Outcome, device: str, seeds: list[int]) -> Evidence:
    """The evidence record of one child."""
    result = outcome.result or {}
    return Evidence(
        device=device,
        device_name=str(result.get("device_name", "")),
        versions=dict(result.get("versions", {})),
        seeds=seeds,
        date=today(),
        seconds=outcome.seconds,
        peak_memory=outcome.peak_memory,
        isolation=outcome.isolation,
    )


class _Ask(msgspec.Struct, frozen=True, kw_only=True):
    """What one invocation asks of a scenario."""

    device: str
    seed: int
    quick: bool
    limits: Limits
    extents: tuple[int, int, int] | None


def run_scenario(
    scenario: Scenario, device: str, *, seed: int = 0, quick: bool = False, limits: Limits | None = None, tool: str = "",
    extents: tuple[int, int, int] | None = None,
) -> Verdict:
    """Runs a scenario in a child process and judges it. `tool` is a compute-sanitizer tool ("memcheck"), on a CUDA device only.

    `extents` (requests before, live requests, padded requests) replaces the scenario's own batches where it can take others. Never raises
    for what the scenario does: a child that dies is a verdict.
    """
    missing = [name for name in (scenario.cuda_needs if device == "cuda" else []) if importlib.util.find_spec(name) is None]
    verdict = Verdict(
        subject=scenario.name, kind="scenario", result="not-reproduced", reason="", rules=list(scenario.rules), title=scenario.title
    )
    if missing:
        return unsupported(
            scenario.name, f"needs {', '.join(missing)} on a CUDA device", kind="scenario", rules=list(scenario.rules), title=scenario.title
        )
    ask = _Ask(device=device, seed=seed, quick=quick, limits=limits or Limits(seconds=300 if device == "cuda" else 60), extents=extents)
    outcome = _child(scenario, ask, "run")
    verdict.evidence = evidence_of(outcome, device, [seed])
    if outcome.status != "ok" or outcome.result is None:
        verdict.result, verdict.reason = "unsupported", f"{outcome.status}: {outcome.detail}"
        return verdict
    verdict.observations = msgspec.convert(outcome.result["observations"], list[Observation])
    if scenario.crashes:
        verdict.observations += [
            _crash_observation(_child(scenario, ask, "crash", variant), variant, variant == scenario.faulty)
            for variant in (scenario.faulty, scenario.corrected)
        ]
    if tool:
        verdict.sanitizer = _sanitize(scenario, ask, tool)
    return settle(verdict, scenario.faulty, scenario.corrected)


def _child(scenario: Scenario, ask: _Ask, entry: str, variant: str | None = None, tool: str = "") -> Outcome:
    with tempfile.TemporaryDirectory(prefix="graphlint-", ignore_cleanup_errors=True) as name:
        box = Path(name)
        request = {
            "path": scenario.path,
            "device": ask.device,
            "seed": ask.seed,
            "quick": ask.quick or bool(tool),
            "extents": ask.extents,
            "entry": entry,
            "variant": variant,
            "eager": bool(tool),
        }
        (box / "request.json").write_text(json.dumps(request), encoding="utf-8")
        prefix = sanitizer.command(tool) if tool else ()
        extra = sanitizer.ENVIRONMENT if tool else {}
        return run(_WORKER, box, limits=ask.limits, device=ask.device, trusted=True, prefix=prefix, extra_environment=extra)


def _crash_observation(outcome: Outcome, variant: str, faulty: bool) -> Observation:
    died = outcome.status in ("crash", "error")
    text = (
        f"the process died: {outcome.detail}"
        if died
        else ("the process ended well" if outcome.status == "ok" else f"{outcome.status}: {outcome.detail}")
    )
    return Observation(
        case="torch indexing in a process of its own",
        variant=variant,
        live=3,
        padded=4,
        unit="requests",
        fault=died,
        lanes=[3] if died else [],
        live_exact=outcome.status == "ok" or (died and faulty and "live lanes differ" not in outcome.stderr),
        text=text,
        buffer="last_rows",
    )


def _sanitize(scenario: Scenario, ask: _Ask, tool: str) -> str:
    if ask.device != "cuda":
        return f"{tool}: runs on a CUDA device only"
    if sanitizer.find() is None:
        return f"{tool}: compute-sanitizer is not installed"
    if not scenario.memcheck:
        return f"{tool}: nothing in this scenario leaves its buffers"
    lines = []
    for variant in (scenario.faulty, scenario.corrected):
        outcome = _child(scenario, ask, "memcheck", variant, tool)
        said = sanitizer.report(outcome.stdout + outcome.stderr)
        ended = "" if outcome.status == "ok" else f" ({outcome.status}: {outcome.detail})"
        lines.append(f"{tool}, {variant}: {said or 'no errors'}{ended}")
    return "\n".join(lines)
