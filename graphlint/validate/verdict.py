"""What validation says: a result, what was seen, and what it was seen with."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from graphlint.validate.sandbox import Isolation

Result = Literal["confirmed", "refuted", "not-reproduced", "unsupported"]

RESULT_MEANING: dict[Result, str] = {
    "confirmed": "a padded reader reads what nobody wrote; seen by running the kernel",
    "refuted": "every lane that a padded reader reads was written, in every schedule tried",
    "not-reproduced": "the kernel ran, but the harness did not bring it to the state that the finding speaks of",
    "unsupported": "the kernel could not be run; the reason says why",
}


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """One schedule run with one variant of the code.

    `lanes` are the padded lanes with a fault and `values` what was found in the first of them; `live_exact` says whether live lanes hold
    what the oracle says. `live` and `padded` count lanes of `unit` in the step looked at.
    """

    case: str
    variant: str
    live: int
    padded: int
    unit: str
    fault: bool
    lanes: list[int] = []
    values: list[str] = []
    live_exact: bool = True
    text: str = ""
    buffer: str = ""


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What a verdict was reached with: enough to repeat it."""

    device: str
    device_name: str
    versions: dict[str, str]
    seeds: list[int]
    date: str
    seconds: float
    peak_memory: int
    isolation: Isolation


class Verdict(msgspec.Struct, kw_only=True):
    """The result for one finding or scenario. `fix`: does the corrected code show no fault and leave live lanes bit-equal?"""

    subject: str
    kind: Literal["finding", "scenario"]
    result: Result
    reason: str
    rules: list[str] = []
    fix: Literal["verified", "failed", "not-run", "none"] = "none"
    observations: list[Observation] = []
    evidence: Evidence | None = None
    sanitizer: str = ""
    title: str = ""


def unsupported(subject: str, reason: str, **more: Any) -> Verdict:
    """A verdict that says why nothing could be run."""
    return Verdict(subject=subject, kind=more.pop("kind", "finding"), result="unsupported", reason=reason, **more)


def settle(verdict: Verdict, faulty: str, corrected: str) -> Verdict:
    """Fills `result`, `reason` and `fix` of a verdict from its observations of the two variants.

    Confirmed needs a fault in some faulty run whose live lanes are right (otherwise the harness, not the code, is at fault); a verified fix
    needs no fault and right live lanes in every corrected run.
    """
    before = [seen for seen in verdict.observations if seen.variant == faulty]
    after = [seen for seen in verdict.observations if seen.variant == corrected]
    shown = [seen for seen in before if seen.fault and seen.live_exact]
    if shown:
        first = shown[0]
        verdict.result = "confirmed"
        verdict.reason = f"{len(shown)} of {len(before)} schedules show it; {first.case}: {first.text}"
    elif not before or not all(seen.live_exact for seen in before):
        verdict.result = "not-reproduced"
        wrong = next((seen for seen in before if not seen.live_exact), None)
        verdict.reason = f"{wrong.case}: live lanes are not what the oracle says: {wrong.text}" if wrong else "no schedule was run"
    else:
        verdict.result = "refuted"
        verdict.reason = f"no fault in {len(before)} schedules"
    if after:
        good = all(not seen.fault and seen.live_exact for seen in after)
        verdict.fix = "verified" if good else "failed"
    return verdict
