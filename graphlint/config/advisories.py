"""Known bugs of released versions that an operator can hit: OSV records with a condition on the configuration."""

from __future__ import annotations

from functools import lru_cache
from importlib import resources
from typing import Any

import msgspec

from graphlint.config.answer import Resolved
from graphlint.config.findings import deployment_finding
from graphlint.config.modes import decode_mode, has_piecewise, mixed_mode
from graphlint.config.versions import Version, parse_version
from graphlint.finding import Finding, Severity


@lru_cache(maxsize=1)
def load_advisories() -> tuple[dict[str, Any], ...]:
    """All bundled records, by id."""
    folder = resources.files("graphlint.config").joinpath("data").joinpath("advisories")
    records = [msgspec.json.decode(entry.read_bytes()) for entry in folder.iterdir() if entry.name.endswith(".json")]
    return tuple(sorted(records, key=lambda r: str(r["id"])))


@lru_cache(maxsize=64)
def advisories_of(version: Version) -> tuple[dict[str, Any], ...]:
    """The records that affect one release."""
    return tuple(record for record in load_advisories() if affects(record, version))


def affects(record: dict[str, Any], version: Version) -> bool:
    """Whether the release lies in one of the record's ranges."""
    for affected in record["affected"]:
        if version in {parse_version(v) for v in affected.get("versions", ())}:
            return True
        for span in affected.get("ranges", ()):
            introduced = fixed = last = None
            for event in span["events"]:
                introduced = event.get("introduced", introduced)
                fixed = event.get("fixed", fixed)
                last = event.get("last_affected", last)
            low = introduced is not None and (introduced == "0" or version >= parse_version(introduced))
            high = (fixed is None or version < parse_version(fixed)) and (last is None or version <= parse_version(last))
            if low and high:
                return True
    return False


def advisory_findings(resolved: Resolved) -> list[Finding]:
    """A GL613 finding for each record that matches release and configuration."""
    if resolved.outcome.error is not None:
        return []
    facts: dict[str, Any] | None = None
    out = []
    for record in advisories_of(resolved.version):
        specific = record["database_specific"]
        facts = _facts(resolved) if facts is None else facts
        if any(_matches(condition, facts) for condition in specific["when"]):
            severity: Severity = specific["severity"]
            out.append(
                deployment_finding(
                    resolved,
                    "GL613",
                    "known-hazard",
                    severity,
                    f"{record['id']}: {record['summary']} ({resolved.version} is affected)",
                    advice=specific["workaround"],
                    span=_place(resolved, specific.get("setting", ())),
                    trace=True,
                )
            )
    return out


def _place(resolved: Resolved, settings: list[str]) -> Any:
    from graphlint.config.findings import setting_span

    return setting_span(resolved, *settings)


def _facts(resolved: Resolved) -> dict[str, Any]:
    outcome, request, situation = resolved.outcome, resolved.request, resolved.situation
    speculation, model = request.speculation, situation.model
    length = request.given("max_model_len")
    sizes = outcome.sizes
    return {
        "mode": outcome.mode,
        "decode": decode_mode(outcome.mode),
        "mixed": mixed_mode(outcome.mode),
        "piecewise": has_piecewise(outcome.mode),
        "runner": outcome.runner.name if outcome.runner else "V1",
        "backend": outcome.support.chosen if outcome.support else "",
        "speculation": speculation is not None,
        "method": speculation.method if speculation is not None else None,
        "query_len": outcome.query_len,
        "dynamic_speculation": bool(speculation and speculation.dynamic),
        "draft_quantized": bool(
            speculation and speculation.draft and any(q in speculation.draft.lower() for q in ("fp8", "nvfp4", "int4", "w4a16", "awq"))
        ),
        "dcp": request.number("decode_context_parallel_size", 1),
        "dcp_varlen": bool(
            outcome.support
            and outcome.support.chosen in resolved.tables.backends
            and resolved.tables.backends[outcome.support.chosen].dcp_varlen
        ),
        "dp": request.number("data_parallel_size", 1),
        "hybrid": bool(model.hybrid),
        "linear": model.linear_attention or ("GDN_ATTN" if model.hybrid else None),
        "moe": bool(model.moe),
        "architecture": model.architecture,
        "gpt_oss": bool(model.gpt_oss),
        "breakable": outcome.breakable,
        "breakable_explicit": "VLLM_USE_BREAKABLE_CUDAGRAPH" in request.env,
        "platform": situation.platform,
        "capability": list(situation.given.gpu.capability) if situation.given.gpu and situation.given.gpu.capability else None,
        "family": situation.given.gpu.capability[0] if situation.given.gpu and situation.given.gpu.capability else None,
        "max_model_len": length if isinstance(length, int) else None,
        "largest_size": sizes.largest if sizes else None,
        "largest_exceeds_length": bool(sizes and isinstance(length, int) and sizes.largest > length),
        "largest_over_seqs": (sizes.largest / max(outcome.max_num_seqs * outcome.query_len, 1)) if sizes else 0,
        "unaligned": bool(sizes and outcome.query_len > 1 and any(s % outcome.query_len for s in sizes.sizes)),
        "layerwise_connector": _layerwise(resolved),
        "attention_op_breaks": _attention_breaks(resolved),
        "sparse": bool(model.sparse and model.mla),
        "dcp_a2a": request.given("dcp_comm_backend") == "a2a",
        "downgraded": any(r.kind.startswith("support") for r in outcome.rewrites),
        "many_requests": (isinstance(request.given("max_num_seqs"), int) and outcome.max_num_seqs >= 512) or outcome.max_num_seqs >= 1024,
        "kv_cache_dtype": str(request.given("kv_cache_dtype") or "auto"),
    }


def _layerwise(resolved: Resolved) -> bool:
    from graphlint.config.request import connector_of

    config = connector_of(resolved.request)
    extra = config.get("kv_connector_extra_config")
    return isinstance(extra, dict) and bool(extra.get("use_layerwise"))


def _attention_breaks(resolved: Resolved) -> bool:
    """Whether the release breaks breakable graphs at the deployment's attention op."""
    points = " ".join(resolved.tables.break_points)
    if resolved.situation.model.mla:
        return "mla" in points
    return ".attention.attention." in points or "unified_attention" in points


def _matches(condition: dict[str, Any], facts: dict[str, Any]) -> bool:
    """All keys hold: a list means "one of", {">": n} and {"<": n} compare, null is "unset", anything else equals."""
    for key, wanted in condition.items():
        have = facts.get(key)
        if isinstance(wanted, list):
            if have not in wanted:
                return False
        elif isinstance(wanted, dict):
            if have is None or any(not _COMPARE[op](have, n) for op, n in wanted.items()):
                return False
        elif have != wanted:
            return False
    return True


_COMPARE: dict[str, Any] = {
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    "!=": lambda a, b: a != b,
}
