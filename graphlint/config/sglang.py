"""SGLang launch commands: which backend captures decode and prefill graphs, and where graphs end (0.5.3 to 0.5.23).

The flags, defaults and auto-disable rules are those of `server_args.py` and, from 0.5.20, `arg_groups/cuda_graph_hook.py`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from graphlint.config.deployment import Deployment
from graphlint.config.gpu import Gpu
from graphlint.config.models import ModelFacts, from_name
from graphlint.config.situation import Given
from graphlint.config.versions import V, Version, VersionRange, parse_version
from graphlint.config.words import OPEN, Span, Word
from graphlint.finding import Confidence, Finding, Fix, Severity

FIRST, LAST = V("0.5.3"), V("0.5.23")
#: default limits this low are worth a word even where no request limit is set
SMALL_BATCH = 160

#: graph options: name -> releases that accept them
OPTIONS: dict[str, VersionRange] = {
    "--disable-cuda-graph": VersionRange(),
    "--disable-cuda-graph-padding": VersionRange(),
    "--cuda-graph-max-bs": VersionRange(None, V("0.5.20")),
    "--cuda-graph-bs": VersionRange(None, V("0.5.20")),
    "--enable-piecewise-cuda-graph": VersionRange(V("0.5.4"), V("0.5.20")),
    "--piecewise-cuda-graph-max-tokens": VersionRange(V("0.5.4"), V("0.5.20")),
    "--piecewise-cuda-graph-tokens": VersionRange(V("0.5.4"), V("0.5.20")),
    "--piecewise-cuda-graph-compiler": VersionRange(V("0.5.4"), V("0.5.20")),
    "--disable-piecewise-cuda-graph": VersionRange(V("0.5.10"), V("0.5.20")),
    "--enforce-piecewise-cuda-graph": VersionRange(V("0.5.10"), V("0.5.20")),
    "--enable-breakable-cuda-graph": VersionRange(V("0.5.11"), V("0.5.20")),
    "--cuda-graph-config": VersionRange(V("0.5.14")),
    "--cuda-graph-backend-decode": VersionRange(V("0.5.14")),
    "--cuda-graph-backend-prefill": VersionRange(V("0.5.14")),
    "--cuda-graph-max-bs-decode": VersionRange(V("0.5.14")),
    "--cuda-graph-max-bs-prefill": VersionRange(V("0.5.14")),
    "--cuda-graph-bs-decode": VersionRange(V("0.5.14")),
    "--cuda-graph-bs-prefill": VersionRange(V("0.5.14")),
    "--disable-decode-cuda-graph": VersionRange(V("0.5.14")),
    "--disable-prefill-cuda-graph": VersionRange(V("0.5.14")),
}
_REPLACEMENT = {
    "--cuda-graph-max-bs": "--cuda-graph-max-bs-decode",
    "--cuda-graph-bs": "--cuda-graph-bs-decode",
    "--disable-piecewise-cuda-graph": "--cuda-graph-backend-prefill disabled",
    "--enable-piecewise-cuda-graph": "--cuda-graph-backend-prefill breakable",
    "--enforce-piecewise-cuda-graph": "--cuda-graph-backend-prefill breakable",
    "--enable-breakable-cuda-graph": "--cuda-graph-backend-prefill breakable",
}


@dataclass
class SglangDeployment:
    """A resolved SGLang launch: backends of the two phases, limits in requests, and every step on record."""

    deployment: Deployment
    version: Version | None
    options: dict[str, tuple[Any, Span]]
    decode: str = "full"
    prefill: str = "none"
    decode_by: str = "default"
    prefill_by: str = "default"
    locked: bool = False
    #: (phase, before, after, why)
    steps: list[tuple[str, str, str, str]] = field(default_factory=list)
    #: reasons for which an explicit prefill backend would have been disabled
    bypassed: list[str] = field(default_factory=list)
    max_bs: int | None = None
    max_bs_by: str = ""
    max_running: int | None = None
    gpu: Gpu | None = None
    #: (option, what to use) that this release does not accept
    removed: list[tuple[str, str, Span]] = field(default_factory=list)
    errors: list[tuple[str, Span]] = field(default_factory=list)

    @property
    def effective(self) -> str:
        """One phrase: `decode full / prefill breakable`."""
        if self.errors:
            return "startup-error"
        if self.decode == self.prefill == "disabled":
            return "disabled (decode and prefill)"
        limit = f" up to bs {self.max_bs}, eager above" if self.cliff else ""
        prefill = "" if self.prefill == "none" else f" / prefill {self.prefill}"
        return f"decode {self.decode}{limit}{prefill}"

    @property
    def cliff(self) -> bool:
        """Whether the server admits wider decode batches than it captures: a set limit above the graphs, or a small default without one."""
        if self.decode == "disabled" or self.max_bs is None:
            return False
        if self.max_running is not None:
            return self.max_bs < self.max_running
        return not self.max_bs_by.startswith("--") and self.max_bs <= SMALL_BATCH

    def span(self, *options: str) -> Span:
        """Where the first of these options stands, else the command."""
        for option in options:
            if option in self.options:
                return self.options[option][1]
        return self.deployment.span


def _parse(words: list[Word]) -> dict[str, tuple[Any, Span]]:
    out: dict[str, tuple[Any, Span]] = {}
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        if not word.text.startswith("--"):
            continue
        name, equals, value = word.text.partition("=")
        if not equals and index < len(words) and not words[index].text.startswith("--"):
            values = []
            while index < len(words) and not words[index].text.startswith("-"):
                values.append(words[index].text)
                index += 1
            value, equals = " ".join(values), "="
        out[name.replace("_", "-")] = (value if equals else True, word.span)
    return out


def resolve_sglang(deployment: Deployment, given: Given, version: Version | None = None) -> SglangDeployment:
    """Resolves an SGLang launch; without a stated version as the newest modelled release."""
    stated = version or (parse_version(deployment.version) if deployment.version else None)
    at = stated or LAST
    out = SglangDeployment(deployment, stated, _parse(deployment.args), gpu=given.gpu)
    model = from_name(str(out.options.get("--model-path", out.options.get("--model", ("", None)))[0]), None)
    for trait, value in given.traits.items():
        setattr(model, trait, value)
    _options(out, at)
    _defaults(out, at, given)
    _explicit(out, at)
    _disaggregation(out, at)
    _compatibility(out, at, model)
    _hard_rules(out, at)
    _limits(out, at)
    return out


def _options(out: SglangDeployment, at: Version) -> None:
    for name, (_, span) in out.options.items():
        accepted = OPTIONS.get(name)
        keyword_gone = out.deployment.entry == "api" and at >= V("0.5.19") and "piecewise" in name  # options stayed one release longer
        if accepted is not None and (at not in accepted or keyword_gone):
            out.removed.append((name, _REPLACEMENT.get(name, ""), span))


def _defaults(out: SglangDeployment, at: Version, given: Given) -> None:
    cuda = given.platform in (None, "cuda") and (given.gpu is None or given.gpu.platform == "cuda")
    if at < V("0.5.10"):
        out.prefill = "none"
    elif at < V("0.5.19"):
        out.prefill = "tc_piecewise"
    elif at < V("0.5.22"):
        out.prefill = "breakable" if cuda else "tc_piecewise"
    else:
        out.prefill = "breakable" if cuda else "disabled"


def _text(out: SglangDeployment, name: str) -> str | None:
    value = out.options.get(name, (None, None))[0]
    return value if isinstance(value, str) and OPEN not in value else None


def _number(out: SglangDeployment, *names: str, default: int = 1) -> int:
    for name in names:
        text = _text(out, name)
        if text is not None and text.isdigit():
            return int(text)
    return default


def _explicit(out: SglangDeployment, at: Version) -> None:
    options = out.options
    if "--disable-cuda-graph" in options:
        out.decode, out.decode_by = "disabled", "--disable-cuda-graph"
        if at >= V("0.5.14") or "--enable-piecewise-cuda-graph" not in options:
            out.prefill, out.prefill_by = ("disabled" if at >= V("0.5.10") else out.prefill), "--disable-cuda-graph"
            out.locked = at >= V("0.5.14")
    if at < V("0.5.20"):
        for option, value in (
            ("--enable-piecewise-cuda-graph", "tc_piecewise"),
            ("--enforce-piecewise-cuda-graph", "tc_piecewise"),
            ("--enable-breakable-cuda-graph", "breakable"),
            ("--disable-piecewise-cuda-graph", "disabled"),
        ):
            if option in options and at in OPTIONS[option]:
                out.prefill, out.prefill_by = value, option
                out.locked = out.locked or option in ("--enforce-piecewise-cuda-graph", "--disable-piecewise-cuda-graph")
    if at < V("0.5.14"):
        return
    for option, phase in (("--disable-prefill-cuda-graph", "prefill"), ("--disable-decode-cuda-graph", "decode")):
        if option in options:
            _set(out, phase, "disabled", option)
    for phase in ("decode", "prefill"):
        backend = _text(out, f"--cuda-graph-backend-{phase}")
        if backend is not None:
            _set(out, phase, backend, f"--cuda-graph-backend-{phase}")
    config = _text(out, "--cuda-graph-config")
    if config is not None:
        try:
            parsed = json.loads(config)
        except ValueError as error:
            out.errors.append((f"--cuda-graph-config is not valid JSON ({error})", out.span("--cuda-graph-config")))
            parsed = {}
        for phase in ("decode", "prefill"):
            inner = parsed.get(phase) if isinstance(parsed, dict) else None
            if isinstance(inner, dict) and isinstance(inner.get("backend"), str):
                _set(out, phase, inner["backend"], "--cuda-graph-config")
    if out.prefill == "tc_piecewise" and at >= V("0.5.22") and out.prefill_by != "default":
        out.errors.append(("the prefill backend tc_piecewise is rejected from 0.5.22: use breakable or disabled", out.span(out.prefill_by)))


def _set(out: SglangDeployment, phase: str, value: str, by: str) -> None:
    if phase == "decode":
        out.decode, out.decode_by = value, by
    else:
        out.prefill, out.prefill_by, out.locked = value, by, True


def _disable(out: SglangDeployment, phase: str, why: str) -> None:
    before = out.decode if phase == "decode" else out.prefill
    if before in ("disabled", "none") and not (phase == "prefill" and before == "none"):
        return
    out.steps.append((phase, before, "disabled", why))
    if phase == "decode":
        out.decode = "disabled"
    else:
        out.prefill = "disabled"


def _disaggregation(out: SglangDeployment, at: Version) -> None:
    if _text(out, "--disaggregation-mode") != "prefill":
        return
    if at < V("0.5.10"):
        if "--enable-piecewise-cuda-graph" not in out.options:
            _disable(out, "decode", "a prefill server without --enable-piecewise-cuda-graph runs without graphs")
            _disable(out, "prefill", "a prefill server without --enable-piecewise-cuda-graph runs without graphs")
    else:
        _disable(out, "decode", "a prefill server decodes nothing")


def _compatibility(out: SglangDeployment, at: Version, model: ModelFacts) -> None:
    """Rules that turn the default prefill graphs off; an explicit backend skips them (and keeps the hazard)."""
    if out.prefill not in ("breakable", "tc_piecewise") or at < V("0.5.10"):
        return
    architecture = model.architecture or ""
    rules = [
        ("pipeline parallelism", _number(out, "--pp-size", "--pipeline-parallel-size") > 1),
        ("KDA linear attention", architecture.startswith("Kimi") and "K2" not in architecture),
        ("DeepSeek-V4 (memory pressure of the capture pool)", architecture.startswith("DeepseekV4")),
        ("context parallelism", _number(out, "--attn-cp-size", "--context-parallel-size") > 1),
        ("decode context parallelism (the capture builds no such metadata)", _number(out, "--dcp-size") > 1),
        ("two-batch overlap", "--enable-two-batch-overlap" in out.options),
        (
            "an unvalidated all-to-all backend",
            (_text(out, "--moe-a2a-backend") or "none") not in ("none", "deepep", "megamoe", "flashinfer"),
        ),
        ("a multimodal model", bool(model.multimodal) and at < V("0.5.22")),
        (
            "trtllm_mla attention for DeepSeek-V3",
            architecture == "DeepseekV3ForCausalLM"
            and "trtllm_mla" in (_text(out, "--attention-backend") or "", _text(out, "--prefill-attention-backend") or ""),
        ),
    ]
    hit = [name for name, applies in rules if applies]
    if out.locked:
        out.bypassed = hit
    elif hit:
        _disable(out, "prefill", f"prefill graphs do not work with {hit[0]}")


def _hard_rules(out: SglangDeployment, at: Version) -> None:
    backend = _text(out, "--attention-backend") or ""
    if backend in ("torch_native", "flex_attention"):
        for phase in ("decode", "prefill"):
            _disable(out, phase, f"attention backend {backend} has no graph support")
        if backend == "flex_attention" and "--speculative-algorithm" in out.options:
            out.errors.append(("flex_attention does not support speculative decoding", out.span("--attention-backend")))
    if _text(out, "--deepep-mode") == "normal":
        _disable(out, "decode", "DeepEP normal mode cannot be captured")
    if "--enable-mis" in out.options:
        for phase in ("decode", "prefill"):
            _disable(out, phase, "multi-item scoring runs without graphs")
    saver = out.deployment.env.get("SGLANG_MEMORY_SAVER_CUDA_GRAPH")
    if (
        out.prefill == "breakable"
        and "--enable-memory-saver" in out.options
        and saver is not None
        and saver.text.lower() in ("1", "true")
        and at >= V("0.5.11")
    ):
        out.errors.append(
            (
                "breakable prefill graphs reject the memory saver's CUDA-graph mode (SGLANG_MEMORY_SAVER_CUDA_GRAPH) while starting",
                out.span("--enable-memory-saver"),
            )
        )


def _limits(out: SglangDeployment, at: Version) -> None:
    for option in ("--cuda-graph-max-bs-decode", "--cuda-graph-max-bs"):
        text = _text(out, option)
        if text is not None and text.isdigit() and at in OPTIONS[option]:
            out.max_bs, out.max_bs_by = int(text), option
    for option in ("--cuda-graph-bs-decode", "--cuda-graph-bs"):
        text = _text(out, option)
        if text and at in OPTIONS[option] and all(t.isdigit() for t in text.split()):
            out.max_bs, out.max_bs_by = max(int(t) for t in text.split()), option
    if out.max_bs is None and out.gpu is not None and out.gpu.memory:
        out.max_bs, out.max_bs_by = (
            _default_max_bs(out.gpu.memory, _number(out, "--tp-size", "--tensor-parallel-size", "--tp")),
            f"default for {out.gpu.name}",
        )
    text = _text(out, "--max-running-requests")
    out.max_running = int(text) if text and text.isdigit() else None


def _default_max_bs(memory: int, tensor_parallel: int) -> int:
    """The largest decode batch captured by default, by GPU memory in GiB (`server_args.py`, 0.5.9 to 0.5.23)."""
    for limit, small, large in ((20, 8, 8), (35, 24, 80), (60, 32, 160), (160, 256, 512)):
        if memory < limit:
            return small if tensor_parallel < 4 else large
    return 512


def sglang_finding(
    resolved: SglangDeployment,
    rule: str,
    name: str,
    severity: Severity,
    message: str,
    *,
    span: Span | None = None,
    advice: str | None = None,
) -> Finding:
    """A finding about an SGLang launch, at `span` or at the command."""
    place = span if span is not None and span.path else resolved.deployment.span
    confidence: Confidence = "high" if resolved.version is not None else "medium"
    return Finding(
        rule=rule,
        name=name,
        severity=severity,
        confidence=confidence,
        path=place.path,
        line=max(place.line, 1),
        column=max(place.column, 1),
        end_line=place.end_line or place.line,
        end_column=place.end_column,
        symbol=resolved.deployment.name,
        message=message,
        fix=Fix("display", advice) if advice else None,
    )
