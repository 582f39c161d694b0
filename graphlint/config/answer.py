"""All outcomes of one deployment in one release: the expected one, and what other facts would give."""

from __future__ import annotations

from dataclasses import dataclass, field

from graphlint.config.deployment import Deployment
from graphlint.config.explore import Answer, Choices, explore
from graphlint.config.history import flag_history
from graphlint.config.merge import LoadYaml, Merged, Problem, Setting, config_words, merge
from graphlint.config.outcome import Outcome
from graphlint.config.pipeline import resolve
from graphlint.config.request import Request, build_request
from graphlint.config.situation import Given, Situation
from graphlint.config.tables import Tables
from graphlint.config.versions import Version
from graphlint.config.words import Word


@dataclass
class Alternative:
    """Another outcome and the facts that lead to it."""

    outcome: Outcome
    situation: Situation
    answers: list[Answer]


@dataclass
class Resolved:
    """A deployment resolved for one release. `alternatives` differ from `outcome` in the effective mode."""

    deployment: Deployment
    version: Version
    tables: Tables
    request: Request
    outcome: Outcome
    situation: Situation
    alternatives: list[Alternative] = field(default_factory=list)
    #: options that would decide between the outcomes: "--gpu", "--model-config", or the name of a symbolic value
    needs: list[str] = field(default_factory=list)

    @property
    def merged(self) -> Merged:
        """The settings as merged."""
        return self.request.merged

    @property
    def effective(self) -> list[str]:
        """Every effective mode that the input allows, the expected first."""
        return list(dict.fromkeys([self.outcome.effective, *(a.outcome.effective for a in self.alternatives)]))


#: engine arguments that no step of the resolution reads; two deployments that differ only in them share one resolution
_NO_INFLUENCE = frozenset(
    {
        "host",
        "port",
        "served_model_name",
        "tool_call_parser",
        "enable_auto_tool_choice",
        "reasoning_parser",
        "trust_remote_code",
        "download_dir",
        "seed",
        "gpu_memory_utilization",
        "chat_template",
        "api_key",
        "uvicorn_log_level",
        "tokenizer",
        "tokenizer_mode",
        "load_format",
        "swap_space",
        "revision",
        "limit_mm_per_prompt",
        "mm_encoder_tp_mode",
        "mm_processor_cache_gb",
        "enable_prefix_caching",
        "generation_config",
        "disable_log_requests",
        "enable_log_requests",
        "disable_log_stats",
        "allowed_local_media_path",
        "media_io_kwargs",
        "default_chat_template_kwargs",
        "hf_overrides",
        "safetensors_load_strategy",
        "tool_parser_plugin",
        "reasoning_parser_plugin",
        "model",
    }
)
_Runs = list[tuple[Situation, Outcome, list[Answer]]]
_cache: dict[tuple[object, ...], _Runs] = {}


def resolve_deployment(
    deployment: Deployment, version: Version, tables: Tables, given: Given, load_yaml: LoadYaml | None = None
) -> Resolved:
    """Resolves one vLLM deployment under one release."""
    merged = _merged(deployment, version, tables, load_yaml)
    request = build_request(merged, deployment.env, version, tables)
    runs = _explored(request, tables, given)
    situation, outcome, _ = runs[0]
    resolved = Resolved(deployment, version, tables, request, outcome, situation)
    for other_situation, other, answers in runs[1:]:
        if other.effective != outcome.effective:
            resolved.alternatives.append(Alternative(other, other_situation, answers))
    if resolved.alternatives:
        resolved.needs = list(dict.fromkeys(_option(q) for q in _deciding(runs)))
    return resolved


def _deciding(runs: _Runs) -> list[str]:
    """Questions that decide: two runs differ in the mode and, among the questions both asked, in the answer to this one alone."""
    answered = [({a.question: a.label for a in answers}, outcome.effective) for _, outcome, answers in runs]
    found: dict[str, None] = {}
    for index, (one, mode) in enumerate(answered):
        for other, other_mode in answered[index + 1 :]:
            if mode != other_mode:
                differing = [q for q in one if q in other and one[q] != other[q]]
                if len(differing) == 1:
                    found[differing[0]] = None
    return list(found)


def _explored(request: Request, tables: Tables, given: Given) -> _Runs:
    """All runs of the resolution, taken from an earlier deployment with the same settings where there was one."""
    values = tuple(sorted((k, repr(s.value)) for k, s in request.merged.values.items() if k not in _NO_INFLUENCE))
    env = tuple(sorted((k, w.text) for k, w in request.env.items() if k.startswith(("VLLM_", "TORCH", "HIP", "SGLANG"))))
    fatal = tuple(p.message for p in request.problems if p.fatal)
    key = (request.version, id(tables), given.key(), request.model, values, env, fatal)
    if key not in _cache:
        runs: _Runs = []

        def run(choices: Choices) -> tuple[Situation, Outcome]:
            situation = Situation(request, tables, given, choices)
            return situation, resolve(situation)

        for (situation, outcome), answers in explore(run, limit=48):
            runs.append((situation, outcome, answers))
        if len(_cache) > 4096:
            _cache.clear()
        _cache[key] = runs
    return _cache[key]


def _merged(deployment: Deployment, version: Version, tables: Tables, load_yaml: LoadYaml | None) -> Merged:
    if deployment.inline is None:
        return merge(deployment.args, version, tables, deployment.entry, load_yaml)
    if deployment.entry == "values":
        return merge(config_words(deployment.inline, version, tables), version, tables, "module", load_yaml)
    merged = Merged()
    known = {flag.dest for flag in tables.flags.values()}
    for key, value, span in deployment.inline:
        if key == "model" and isinstance(value, str):
            merged.model = Word(value, span)
        if value is not None:
            merged.values[key] = Setting(value, span, key)
        if known and key not in known and key in _once_known():
            merged.problems.append(
                Problem("unknown-option", f"{key} is not an engine argument of {version}", span, True, "--" + key.replace("_", "-"))
            )
    return merged


def _once_known() -> frozenset[str]:
    return frozenset(flag_history())


def _option(question: str) -> str:
    if question == "gpu":
        return "--gpu"
    if question.startswith("model:"):
        return "--model-config"
    if question.startswith("support of"):
        return f"--assume support= ({question})"
    return question
