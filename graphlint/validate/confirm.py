"""From a finding to a verdict: take the kernel out, plan the case, run it in the sandbox as it is and as fixed, judge the lanes."""

from __future__ import annotations

import ast
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from graphlint.facts.jit import is_kernel
from graphlint.finding import Edit, Finding
from graphlint.validate import launch as launches
from graphlint.validate import plan, sanitizer, uses
from graphlint.validate.case import Case, Schedule, Step
from graphlint.validate.extract import Kernel, Sources, Unsupported, extract
from graphlint.validate.sandbox import Limits, Outcome, run
from graphlint.validate.scenarios import available, evidence_of, run_scenario
from graphlint.validate.verdict import Observation, Verdict, settle, unsupported
from graphlint.validate.warm import WarmJail

if TYPE_CHECKING:
    from graphlint.facts.kernels import KernelModel

_WORKER = "graphlint.validate.case_worker"
AS_IS, FIXED = "as it is", "fixed"
#: rules whose fault is a lane nobody writes
_COVERAGE_RULES = frozenset({"GL201", "GL202", "GL203", "GL208", "GL301"})
_STRAY_RULES = frozenset({"GL204", "GL205"})
#: host code that plans attention by a count of another unit: shown through the decode scenario with the finding's own batches
_DECODE_RULES = frozenset({"GL101", "GL102", "GL501"})
_LARGEST_BATCH = 256


def confirm(
    finding: Finding,
    sources: Sources | Mapping[str, str],
    device: str = "cpu",
    limits: Limits | None = None,
    *,
    model: KernelModel | None = None,
    fixed: Mapping[str, str] | None = None,
    hints: plan.Hints | None = None,
    seeds: tuple[int, ...] = (0,),
    quick: bool = False,
    tool: str = "",
    warm: WarmJail | None = None,
) -> Verdict:
    """Runs the kernel that `finding` speaks of and says whether the fault shows.

    `sources` gives the text of a path of the checkout (a function or a mapping). `fixed` holds edited texts that replace some of them; when
    it is None and the finding carries a fix, that fix is applied. `model` says which parameter a finding's buffer is where names do not.
    `warm` (see `warm_jail`) spares the imports. Never raises for what the kernel does or lacks: that is a verdict.
    """
    read: Sources = sources.get if isinstance(sources, Mapping) else sources
    subject = f"{finding.path}:{finding.line} {finding.symbol}".strip()
    more: dict[str, Any] = {"rules": [finding.rule], "title": finding.message}
    if finding.rule in _DECODE_RULES:
        return _through_decode(finding, subject, device, limits, seeds[0], quick)
    if finding.rule not in _COVERAGE_RULES | _STRAY_RULES | {"GL206"}:
        return unsupported(subject, f"{finding.rule} has no probe", **more)
    if fixed is None and finding.fix is not None and finding.fix.edits:
        fixed = edited(finding.fix.edits, read)
    try:
        name = kernel_of(finding, read)
        kernel = extract(finding.path, name, read)
        variants = {AS_IS: kernel}
        if fixed:
            overlay = dict(fixed)
            variants[FIXED] = extract(finding.path, name, lambda path: overlay.get(path) or read(path))
            if _same_code(variants[FIXED].module, kernel.module):
                del variants[FIXED]  # the fix is in host code, which is not run
        prepared = _prepare(finding, variants, read, model, hints)
        wanted = plan.schedules(witness_steps(finding), list(seeds), quick)
        verdict = unsupported(subject, "no case was built", **more)
        for flags in (False, True):
            verdict = _attempt(finding, subject, variants, prepared(flags), wanted, device, limits or Limits(), tool, warm)
            # what ended by a limit would end so again
            settled = verdict.result in ("confirmed", "refuted") or verdict.reason.startswith(("timeout", "memory", "denied"))
            if settled or prepared(True).constexprs == prepared(False).constexprs:
                break
        verdict.rules, verdict.title = [finding.rule], finding.message
        if fixed and FIXED not in variants:
            verdict.fix = "not-run"
        return verdict
    except Unsupported as error:
        return unsupported(subject, str(error), **more)


def _same_code(one: str, other: str) -> bool:
    """Whether two modules differ in their line numbers at most."""
    return ast.dump(ast.parse(one)) == ast.dump(ast.parse(other))


def warm_jail() -> WarmJail:
    """A context that keeps torch and Triton imported for a series of `confirm` calls on the CPU."""
    return WarmJail(_WORKER)


def _through_decode(finding: Finding, subject: str, device: str, limits: Limits | None, seed: int, quick: bool) -> Verdict:
    """What the finding's batches do to a paged decode planned as it says. The host code itself is not run, and the reason says so."""
    scenario = next(one for one in available() if one.name == "stale-decode-offsets")
    verdict = run_scenario(scenario, device, seed=seed, quick=quick, limits=limits, extents=_extents(finding))
    verdict.subject, verdict.kind, verdict.rules, verdict.title = subject, "finding", [finding.rule], finding.message
    verdict.fix = "none"
    if verdict.result == "confirmed":
        verdict.reason = f"by reproduction ({scenario.name}), not by running this code: {verdict.reason}"
    return verdict


def _extents(finding: Finding) -> tuple[int, int, int] | None:
    """(requests before, live, padded) of the finding's witness; a step with live = padded gives no room for a fault and is not taken."""
    steps = finding.witness.steps if finding.witness else []
    if len(steps) < 2:
        return None
    before, live, padded = int(steps[0].get("live", 0)), int(steps[-1].get("live", 0)), int(steps[-1].get("padded", 0))
    return (max(before, padded), live, padded) if 0 < live < padded <= _LARGEST_BATCH and before <= _LARGEST_BATCH else None


def _prepare(finding: Finding, variants: dict[str, Kernel], read: Sources, model: KernelModel | None, hints: plan.Hints | None) -> Any:
    """A function from the value of free boolean constexprs to the case."""
    kernel = variants[AS_IS]
    used = uses.read(kernel)
    for other in variants.values():
        for name, use in uses.read(other).pointers.items() if other is not kernel else ():
            # a buffer that only the corrected kernel stores to
            used.pointers.setdefault(name, use).stores += use.stores
    found = None
    for path in dict.fromkeys([kernel.path, *[point.path for point in finding.trace]]):
        found = found or launches.find(path, kernel.name, kernel.params, read, kernel.autotune)
    if model is not None:
        for segment in model.segments:
            if segment.kind != "load" and segment.pointer in kernel.params:
                used.pointers.setdefault(segment.pointer, uses.Use(stores=1))
        for deref in model.derefs:
            if deref.source in used.pointers:
                used.pointers[deref.source].indexes = True
    watch = plan.watched(finding.buffer, used, found)
    if not watch:
        stored = [name for name, use in used.pointers.items() if use.stores]
        # the message may name the parameter; one stored buffer needs no name
        watch = [name for name in stored if name in finding.message] or (stored if len(stored) == 1 else [])
    if not watch:
        raise Unsupported(f"needs to know which parameter of {kernel.name} is {finding.buffer or 'meant'}")
    return lambda flags: plan.build(kernel, used, found, watch, finding.rule, hints, flags)


def _attempt(
    finding: Finding, subject: str, variants: dict[str, Kernel], case: Case, wanted: list[Schedule], device: str, limits: Limits, tool: str,
    warm: WarmJail | None,
) -> Verdict:
    for schedule in wanted:
        plan.check(case, schedule)
    with tempfile.TemporaryDirectory(prefix="graphlint-", ignore_cleanup_errors=True) as name:
        box = Path(name)
        modules = {}
        for number, (variant, kernel) in enumerate(variants.items()):
            modules[variant] = f"variant{number}.py"
            (box / modules[variant]).write_text(kernel.module, encoding="utf-8")
        prefix = sanitizer.command(tool) if tool and device == "cuda" else ()
        request = {
            "case": msgspec.to_builtins(case),
            "schedules": msgspec.to_builtins(wanted),
            "modules": modules,
            "device": device,
            "eager": bool(prefix),
        }
        (box / "request.json").write_text(json.dumps(request), encoding="utf-8")
        outcome = run(
            _WORKER, box, limits=limits, device=device, prefix=prefix, extra_environment=sanitizer.ENVIRONMENT if prefix else {},
            warm=warm if device == "cpu" else None,
        )
    verdict = Verdict(subject=subject, kind="finding", result="unsupported", reason="")
    verdict.evidence = evidence_of(outcome, device, sorted({schedule.seed for schedule in wanted}))
    if tool:
        said = sanitizer.report(outcome.stdout + outcome.stderr)
        verdict.sanitizer = (
            f"{tool}: {said or 'no errors'}" if prefix else f"{tool}: compute-sanitizer is not there or the device is not CUDA"
        )
    return _judge(verdict, finding, case, wanted, outcome)


def _judge(verdict: Verdict, finding: Finding, case: Case, wanted: list[Schedule], outcome: Outcome) -> Verdict:
    runs: list[dict[str, Any]] = (outcome.result or {}).get("runs", [])
    baseline = {entry["schedule"]: entry for entry in runs if entry["variant"] == AS_IS}
    for entry in runs:
        for buffer in entry["buffers"]:
            verdict.observations.append(_observe(finding, case, wanted[entry["schedule"]], entry, buffer, baseline[entry["schedule"]]))
    settle(verdict, AS_IS, FIXED)
    if outcome.status != "ok":
        at = (outcome.result or {}).get("at", "")
        reason = f"{outcome.status}: {outcome.detail}" + (f" ({at})" if at else "")
        if verdict.result != "confirmed":
            verdict.result = "unsupported"
            verdict.reason = reason
        verdict.fix = "none" if not any(seen.variant == FIXED for seen in verdict.observations) else "failed"
    return verdict


def _observe(
    finding: Finding, case: Case, schedule: Schedule, entry: dict[str, Any], buffer: dict[str, Any], baseline: dict[str, Any]
) -> Observation:
    row, now, name = case.rows.get(buffer["name"], 1), schedule.now, buffer["name"]
    elements = buffer["unwritten"]
    text, values = "", list(buffer["stale"])
    if finding.rule in _STRAY_RULES:
        fresh = [stray for stray in entry["strays"] if stray not in entry["strays_full"]]
        elements = buffer["negative"]
        if fresh:
            kind, where, element = fresh[0]
            text = f"a padded lane makes the kernel {kind} {where}[{element}], outside of the buffer"
            elements = elements or [now.live * row]
        elif elements:
            text = f"padded lanes of {name} hold a negative number"
    elif finding.rule == "GL206":
        elements = buffer["not_finite"]
        text = f"padded lanes of {name} are not finite" if elements else ""
    lanes = sorted({element // row for element in elements})
    if not text and lanes:
        span = f"lane {lanes[0]}" if len(lanes) == 1 else f"lanes {lanes[0]}..{lanes[-1]}"
        stale = f"; lane {lanes[0]} still holds {values[0]} of the older batch" if values else ""
        text = f"{span} of {name} read at the padded size, written by nobody{stale}"
    live_exact = buffer["written_live"] > 0
    if buffer["scattered"] and finding.rule in _COVERAGE_RULES:
        live_exact, lanes = False, []
        text = f"the kernel scatters to {name} by a loaded index; what it leaves unwritten is no padding"
    elif not live_exact and buffer["from_corrected"] and entry["variant"] == AS_IS:
        live_exact, text = True, f"no lane of {name} is written at all; the corrected kernel writes {len(lanes)}"
    elif not live_exact:
        text = f"the kernel wrote none of the lanes of {name} that a reader sees"
    if entry["variant"] == FIXED:
        different = _first_difference(baseline, entry, name, min(baseline_unwritten(baseline, name), default=None))
        if different is not None:
            live_exact, text = False, f"live lane {different // row} of {name} changed"
    return Observation(
        case=schedule.text(),
        variant=entry["variant"],
        live=now.live,
        padded=max(now.padded, *[lane + 1 for lane in lanes[:256]], 0),
        unit="lanes",
        fault=bool(lanes),
        lanes=lanes,
        values=values,
        live_exact=live_exact,
        text=text or f"all {buffer['read']} elements that a padded reader reads are written",
        buffer=name,
    )


def baseline_unwritten(entry: dict[str, Any], name: str) -> list[int]:
    """Elements of buffer `name` that this run left unwritten."""
    return [element for buffer in entry["buffers"] if buffer["name"] == name for element in buffer["unwritten"]]


def _first_difference(before: dict[str, Any], after: dict[str, Any], name: str, padding: int | None) -> int | None:
    """First element of a live lane that two variants wrote differently. Live ends where the first unwritten element begins."""
    new = dict(after["values"].get(name, []))
    for element, value in before["values"].get(name, []):
        if padding is not None and element >= padding:
            break
        if new.get(element) != value and not (value != value and new.get(element) != new.get(element)):
            return int(element)
    return None


def kernel_of(finding: Finding, read: Sources) -> str:
    """Name of the jit function around the finding's line, else the one its symbol names."""
    text = read(finding.path)
    if text is None:
        raise Unsupported(f"needs the file {finding.path}")
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise Unsupported(f"needs {finding.path} to parse (line {error.lineno})") from error
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and is_kernel(node)]
    around = [node for node in functions if node.lineno <= finding.line <= (node.end_lineno or node.lineno)]
    if around:
        return max(around, key=lambda node: node.lineno).name
    short = finding.symbol.rsplit(".", 1)[-1]
    if any(node.name == short for node in functions):
        return short
    raise Unsupported(f"needs a Triton kernel at {finding.path}:{finding.line}; {finding.symbol or 'this'} is host code")


def witness_steps(finding: Finding) -> list[Step] | None:
    """The finding's own schedule as steps, where it is in requests and fits the harness (at most 16 requests)."""
    if finding.witness is None:
        return None
    steps = [step for step in finding.witness.steps if step.get("unit", "requests") == "requests"]
    if len(steps) < 2:
        return None
    found = []
    for step in steps:
        live, padded = int(step.get("live", 0)), int(step.get("padded", 0) or step.get("live", 0))
        if not 0 < live <= padded <= 16:
            return None
        found.append(Step(live=live, padded=padded, lengths=[1] * padded))
    return found


def edited(edits: list[Edit], read: Sources) -> dict[str, str]:
    """Texts of the files that `edits` change, after the change. Raises Unsupported when a file is not there."""
    result: dict[str, str] = {}
    for path in {edit.path for edit in edits}:
        text = read(path)
        if text is None:
            raise Unsupported(f"needs the file {path}")
        lines = text.splitlines(keepends=True)
        for edit in sorted((one for one in edits if one.path == path), key=lambda one: (one.line, one.column), reverse=True):
            head = lines[edit.line - 1][: edit.column - 1] if edit.line <= len(lines) else ""
            tail = lines[edit.end_line - 1][edit.end_column - 1 :] if edit.end_line <= len(lines) else ""
            lines[edit.line - 1 : edit.end_line] = [head + edit.text + tail]
        result[path] = "".join(lines)
    return result
