"""Findings of `graphlint check` through the sandbox, for `graphlint validate PATHS` and `graphlint check --confirm`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click
import msgspec

if TYPE_CHECKING:
    from graphlint.finding import Finding, Proof
    from graphlint.validate.sandbox import Limits
    from graphlint.validate.verdict import Observation, Verdict
    from graphlint.validate.warm import WarmJail

#: rules whose findings name a kernel that can be run; the others of `DECODE` go through the decode scenario
KERNEL = frozenset({"GL201", "GL202", "GL203", "GL204", "GL205", "GL206", "GL208"})
DECODE = frozenset({"GL101", "GL102", "GL501"})


def has_probe(finding: Finding) -> bool:
    """Whether something can be executed for the finding."""
    return finding.rule in KERNEL | DECODE


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """How to run."""

    device: str
    limits: Limits
    seeds: tuple[int, ...] = (0,)
    quick: bool = False
    tool: str = ""


def verdicts(findings: Sequence[Finding], probe: Probe, warm: WarmJail) -> Iterator[tuple[Finding, Verdict]]:
    """A verdict for each finding that has a probe; one import of torch serves all. Fixes are those the findings carry."""
    from graphlint.validate.confirm import confirm

    wanted = [finding for finding in findings if has_probe(finding)]
    decode: dict[str, Verdict] = {}
    for finding in wanted:
        same = decode.get(_batches(finding)) if finding.rule in DECODE else None
        if same is not None:  # the scenario depends on the finding's batches alone
            subject = f"{finding.path}:{finding.line} {finding.symbol}".strip()
            yield finding, msgspec.structs.replace(same, subject=subject, rules=[finding.rule], title=finding.message)
            continue
        verdict = confirm(
            finding, read_source, probe.device, probe.limits, seeds=probe.seeds, quick=probe.quick, tool=probe.tool, warm=warm,
        )
        if finding.rule in DECODE:
            decode[_batches(finding)] = verdict
        yield finding, verdict


def _batches(finding: Finding) -> str:
    return repr(finding.witness.steps) if finding.witness else ""


def read_source(path: str) -> str | None:
    """Text of a file; None where there is none or it is no text."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return None


def confirm_confidence(findings: Sequence[Finding]) -> dict[str, Proof]:
    """Runs the kernels of findings on the CPU: what is confirmed becomes high, what is refuted low; the rest stays, and says why.
    What was seen comes back by fingerprint.

    Findings about host code stay as they are: a reproduction says nothing about this very code.
    """
    from graphlint.validate.confirm import warm_jail
    from graphlint.validate.devices import missing_packages
    from graphlint.validate.sandbox import Limits

    kernels = [finding for finding in findings if finding.rule in KERNEL]
    if not kernels:
        return {}
    missing = missing_packages("cpu")
    if missing:
        raise click.UsageError(f"--confirm needs {', '.join(missing)}: pip install 'vllm-graphlint[validate]'")
    proofs: dict[str, Proof] = {}
    with warm_jail() as warm:
        for finding, verdict in verdicts(kernels, Probe(device="cpu", limits=Limits(seconds=60), quick=True), warm):
            if verdict.result == "confirmed":
                finding.confidence = "high"
            elif verdict.result == "refuted":
                finding.confidence = "low"
            click.echo(f"{verdict.result}: {finding.path}:{finding.line} {finding.rule}: {verdict.reason}", err=True)
            proofs[finding.fingerprint] = _proof(verdict)
    return proofs


def _proof(verdict: Verdict) -> Proof:
    from graphlint.finding import Proof, Strip
    from graphlint.validate.render import telling

    shown: dict[str, Observation] = {}
    for seen in telling(verdict.observations):
        shown.setdefault(seen.variant, seen)  # of several runs of a variant, the first
    strips = (Strip(seen.variant, seen.live, seen.padded, tuple(seen.lanes), f"{seen.case}: {seen.text}") for seen in shown.values())
    return Proof(verdict.result, verdict.reason, tuple(strips))
