"""The resolution report: requested mode, each rewrite, effective mode, drafter, requests covered; as text and as JSON."""

from __future__ import annotations

from typing import Any

from graphlint.config.answer import Resolved
from graphlint.config.check import Checked, Result
from graphlint.config.modes import decode_mode, mixed_mode
from graphlint.config.words import shown, unknown_names
from graphlint.finding import Finding

_MARK = {"error": "error", "warning": "warning", "info": "info"}
WORDS = {
    "NONE": "no graphs",
    "PIECEWISE": "piecewise graphs for all batches",
    "FULL": "full graphs for all batches",
    "FULL_DECODE_ONLY": "full graphs for decode, none for batches with prefill",
    "FULL_AND_PIECEWISE": "full graphs for decode, piecewise for batches with prefill",
}


def render_text(result: Result, findings: list[Finding], verbose: bool = False) -> str:
    """One block per deployment with its findings under it; malformed files first."""
    lines: list[str] = []
    used: set[int] = set()
    blocks = _grouped(result.checked)
    for checked, others in blocks:
        own = [f for f in findings if f.path == checked.deployment.span.path and any(_belongs(f, c, result) for c in (checked, *others))]
        if not verbose and not own and len(blocks) > 3 and not checked.notes:
            continue
        lines += _block(checked, others)
        for finding in own:
            if id(finding) not in used:
                used.add(id(finding))
                lines += _finding(finding)
        lines.append("")
    for finding in findings:
        if id(finding) not in used:
            lines += _finding(finding)
    for note in result.notes:
        lines.append(f"note: {note.path}:{note.line}: {shown(note.message)}")
    for error in result.errors:
        lines.append(f"error: {error.path}: {error.message}")
    lines.append(_summary(result, findings))
    return "\n".join(lines) + "\n"


def _grouped(checked: list[Checked]) -> list[tuple[Checked, list[Checked]]]:
    """Deployments of one place and one answer shown together: variants that differ in nothing the report shows."""
    groups: dict[Any, tuple[Checked, list[Checked]]] = {}
    for one in checked:
        answers = tuple((str(r.version), tuple(r.effective), r.outcome.covered) for r in one.resolved)
        key = (
            one.deployment.span.path,
            one.deployment.span.line,
            one.deployment.engine,
            answers,
            one.sglang.effective if one.sglang else "",
        )
        if key in groups:
            groups[key][1].append(one)
        else:
            groups[key] = (one, [])
    return list(groups.values())


def _belongs(finding: Finding, checked: Checked, result: Result) -> bool:
    deployment = checked.deployment
    lines = {w.span.line for w in deployment.args} | {w.span.line for w in deployment.env.values()} | {deployment.span.line}
    lines |= {span.line for _, _, span in deployment.inline or ()}
    return finding.line in lines


def _block(checked: Checked, others: list[Checked]) -> list[str]:
    deployment = checked.deployment
    names = [n for n in (deployment.name, *(o.deployment.name for o in others)) if n]
    label = f" ({', '.join(names[:3])}{f' and {len(names) - 3} more' if len(names) > 3 else ''})" if names else ""
    place = f"{deployment.span.path}:{deployment.span.line}" if deployment.span.path else deployment.engine
    lines = [f"{place}{label}"]
    if checked.sglang is not None:
        return lines + _sglang(checked)
    for resolved in checked.resolved:
        lines += ["  " + line for line in _resolution(resolved)]
    unknown = sorted({n for w in deployment.args for n in unknown_names(w.text)})
    if unknown:
        lines.append(f"  not known here: {', '.join(unknown[:8])}{' ...' if len(unknown) > 8 else ''}")
    lines += [f"  note: {shown(n)}" for n in (*checked.notes, *(note.message for note in deployment.notes))]
    return lines


def _resolution(resolved: Resolved) -> list[str]:
    outcome = resolved.outcome
    head = f"vLLM {resolved.version}: "
    if outcome.error is not None:
        lines = [head + f"does not start: {outcome.error.kind}: {shown(outcome.error.message)}"]
        if outcome.error.symbol:
            lines.append(f"    raised in {outcome.error.symbol}")
    else:
        chain = " -> ".join([outcome.requested, *(r.after for r in outcome.rewrites)])
        lines = [head + f"{chain}: {WORDS[outcome.mode]}", f"    asked for: {outcome.requested} ({outcome.requested_by})"]
    for rewrite in outcome.rewrites:
        lines.append(f"    {rewrite.before} -> {rewrite.after}: {rewrite.why}")
        lines.append(f"        {rewrite.file}, {rewrite.symbol}")
    if outcome.support is not None:
        groups = ", ".join(f"{g.backend} {g.level} ({g.at})" for g in outcome.support.groups)
        device = next((a.label for a in _base_answers(resolved) if a.question == "gpu"), None)
        lines.append(f"    backends{f' on {device}' if device else ''}: {groups}")
    if outcome.runner is not None:
        lines.append(f"    model runner: {outcome.runner.name} ({outcome.runner.why}){', breakable graphs' if outcome.breakable else ''}")
    if outcome.error is None and outcome.mode != "NONE":
        lines += _coverage(resolved)
    if outcome.drafter is not None:
        lines.append(f"    drafter: {outcome.drafter.text}")
    for kind_text in outcome.notes:
        lines.append(f"    note: {kind_text[1]}")
    shown_alternatives: set[str] = set()
    for alternative in resolved.alternatives:
        key = alternative.outcome.effective
        if key in shown_alternatives:
            continue
        shown_alternatives.add(key)
        expected = {a.question: a.label for a in _base_answers(resolved)}
        differing = [a.label for a in alternative.answers if expected.get(a.question) != a.label] or [a.label for a in alternative.answers]
        text = alternative.outcome.error.message if alternative.outcome.error else WORDS[alternative.outcome.mode]
        lines.append(f"    but {key} ({shown(text)}) if {shown(', '.join(differing[-2:]))}")
    if resolved.needs:
        lines.append(f"    would be decided by: {', '.join(shown(n) for n in resolved.needs)}")
    if resolved.situation.assumed and (resolved.alternatives or outcome.rewrites):
        lines.append(f"    assumed: {', '.join(resolved.situation.assumed.values())}")
    return lines


def _base_answers(resolved: Resolved) -> list[Any]:
    return resolved.situation.choices.answers


def _coverage(resolved: Resolved) -> list[str]:
    outcome = resolved.outcome
    sizes = outcome.sizes
    if sizes is None or not sizes.sizes:
        return []
    shown_sizes = sizes.sizes if len(sizes.sizes) <= 8 else [*sizes.sizes[:4], "...", *sizes.sizes[-2:]]
    lines = [f"    capture sizes: {' '.join(map(str, shown_sizes))} tokens ({len(sizes.sizes)})"]
    if outcome.covered is not None:
        kind = decode_mode(outcome.mode)
        rest = "" if outcome.covered >= outcome.max_num_seqs else f"; larger ones run {_uncovered(resolved)}"
        per = f" x {outcome.query_len} tokens" if outcome.query_len > 1 else ""
        lines.append(f"    decode batches up to {outcome.covered} of {outcome.max_num_seqs} requests{per} replay {kind} graphs{rest}")
    return lines


def _uncovered(resolved: Resolved) -> str:
    outcome = resolved.outcome
    largest = outcome.sizes.largest if outcome.sizes else 0
    if mixed_mode(outcome.mode) == "PIECEWISE" and outcome.covered is not None and largest >= (outcome.covered + 1) * outcome.query_len:
        return f"piecewise up to {largest} tokens, then eager"
    return "eager"


def _sglang(checked: Checked) -> list[str]:
    resolved = checked.sglang
    assert resolved is not None
    version = str(resolved.version) if resolved.version else "0.5.23 (none stated)"
    lines = [
        f"  SGLang {version}: {resolved.effective}",
        f"    decode: {resolved.decode} ({resolved.decode_by}); prefill: {resolved.prefill} ({resolved.prefill_by})",
    ]
    for phase, before, after, why in resolved.steps:
        lines.append(f"    {phase} {before} -> {after}: {why}")
    if resolved.max_bs is not None:
        lines.append(f"    decode graphs up to batch size {resolved.max_bs} ({resolved.max_bs_by})")
    return lines


def _finding(finding: Finding) -> list[str]:
    name = f" [{finding.symbol}]" if finding.symbol else ""
    lines = [f"  {_MARK[finding.severity]}[{finding.rule}] {finding.path}:{finding.line}: {finding.message}{name}"]
    if finding.fix is not None:
        lines.append(f"      change: {finding.fix.title}")
    return lines


def _summary(result: Result, findings: list[Finding]) -> str:
    counts = {s: sum(f.severity == s for f in findings) for s in ("error", "warning", "info")}
    found = ", ".join(f"{n} {s}{'s' if n != 1 and s != 'info' else ''}" for s, n in counts.items() if n) or "no problems"
    return f"{len(result.checked)} deployment{'s' if len(result.checked) != 1 else ''}: {found}"


def deployments_json(result: Result) -> list[dict[str, Any]]:
    """The `deployments` list of JSON schema 1: one entry per deployment, with an answer per release."""
    return [_deployment(c) for c in result.checked]


def _deployment(checked: Checked) -> dict[str, Any]:
    deployment = checked.deployment
    out: dict[str, Any] = {
        "engine": deployment.engine,
        "path": deployment.span.path,
        "line": deployment.span.line,
        "name": deployment.name,
        "notes": [shown(n) for n in (*checked.notes, *(note.message for note in deployment.notes))],
        "unknown": sorted({n for w in deployment.args for n in unknown_names(w.text)}),
    }
    if checked.sglang is not None:
        s = checked.sglang
        out["resolutions"] = [
            {
                "version": str(s.version) if s.version else None,
                "effective_mode": s.effective,
                "decode": s.decode,
                "prefill": s.prefill,
                "max_batch_size": s.max_bs,
                "steps": [{"phase": p, "before": b, "after": a, "why": w} for p, b, a, w in s.steps],
            }
        ]
        return out
    out["resolutions"] = [_resolution_json(r) for r in checked.resolved]
    return out


def _resolution_json(resolved: Resolved) -> dict[str, Any]:
    outcome = resolved.outcome
    return {
        "version": str(resolved.version),
        "requested": outcome.requested,
        "requested_by": outcome.requested_by,
        "rewrites": [
            {"before": r.before, "after": r.after, "kind": r.kind, "why": r.why, "file": r.file, "symbol": r.symbol}
            for r in outcome.rewrites
        ],
        "effective_mode": outcome.effective,
        "error": {"kind": outcome.error.kind, "message": shown(outcome.error.message), "symbol": outcome.error.symbol}
        if outcome.error
        else None,
        "decode": decode_mode(outcome.mode) if outcome.error is None else None,
        "mixed": mixed_mode(outcome.mode) if outcome.error is None else None,
        "runner": outcome.runner.name if outcome.runner else None,
        "breakable": outcome.breakable,
        "backends": [{"name": g.backend, "support": g.level, "source": g.at} for g in outcome.support.groups] if outcome.support else [],
        "capture_sizes": outcome.sizes.sizes if outcome.sizes else None,
        "tokens_per_request": outcome.query_len,
        "max_num_seqs": outcome.max_num_seqs,
        "covered_requests": outcome.covered,
        "drafter": {"first": outcome.drafter.first, "later": outcome.drafter.later, "why": outcome.drafter.why}
        if outcome.drafter
        else None,
        "alternatives": [{"effective_mode": a.outcome.effective, "if": [shown(x.label) for x in a.answers]} for a in resolved.alternatives],
        "needs": [shown(n) for n in resolved.needs],
        "assumed": list(resolved.situation.assumed.values()),
    }
