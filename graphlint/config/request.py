"""What a command line asks for, in the types of one vLLM release: the input of the resolution."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from graphlint.config.json_values import Symbol, parse_json
from graphlint.config.merge import Merged, Problem, Setting
from graphlint.config.modes import DYNAMO_ONCE, MODES, NO_COMPILE, STOCK, VLLM_COMPILE
from graphlint.config.tables import Tables
from graphlint.config.versions import V, Version
from graphlint.config.words import OPEN, Span, Word

COMPILE_NAMES = {"NONE": NO_COMPILE, "STOCK_TORCH_COMPILE": STOCK, "DYNAMO_TRACE_ONCE": DYNAMO_ONCE, "VLLM_COMPILE": VLLM_COMPILE}
#: fields that meant something once: field -> (first release where it is an error or dead, replacement)
_REMOVED_FIELDS = {
    "full_cuda_graph": ("0.11.1", '"cudagraph_mode": "FULL"'),
    "use_cudagraph": ("0.11.1", '"cudagraph_mode": "NONE" or "PIECEWISE"'),
    "level": ("0.18.0", '"mode"'),
}


@dataclass
class Speculation:
    """Speculative decoding as asked for; `tokens` is None where the draft's own configuration decides."""

    method: str | None
    tokens: int | None
    draft: str | None = None
    enforce_eager: bool = False
    dynamic: bool = False
    adaptive: bool = False
    parallel_drafting: bool = False
    symbolic: bool = False
    span: Span | None = None


@dataclass
class Request:
    """Everything the resolution reads. Counts are requests or tokens as named; None is "not given"."""

    version: Version
    merged: Merged
    env: dict[str, Word]
    model: str | None = None
    mode: str | Symbol | None = None
    compile_mode: int | Symbol | None = None
    level: int | None = None
    enforce_eager: bool = False
    backend: str | None = None
    sizes: tuple[int, ...] | None = None
    largest: int | None = None
    legacy_sizes: tuple[int, ...] = ()
    splitting_ops: tuple[str, ...] | None = None
    inductor_partition: bool = False
    sequence_parallel: bool = False
    fuse_attention: bool = False
    speculation: Speculation | None = None
    compilation: dict[str, Any] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def number(self, name: str, default: int) -> int:
        """An integer option, its default where it is not given or symbolic."""
        value = self.merged.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else default

    def given(self, name: str) -> Any:
        """The value of an option, None where it is not given."""
        return self.merged.get(name)

    def is_symbolic(self, name: str) -> bool:
        """Whether an option is given with a value that the input does not decide."""
        return isinstance(self.merged.get(name), Symbol)

    def span_of(self, *names: str) -> Span | None:
        """Where the first of these options that is given stands."""
        for name in names:
            if name in self.merged.values:
                return self.merged.values[name].span
        return None

    def flag_env(self, name: str) -> str | None:
        """An environment variable's text, None where it is absent or symbolic."""
        word = self.env.get(name)
        return word.text if word is not None and word.known else None


def build_request(merged: Merged, env: dict[str, Word], version: Version, tables: Tables) -> Request:
    """Types the settings; what the release rejects is added to `problems` as fatal."""
    request = Request(version, merged, env, model=merged.model.text if merged.model else None)
    request.problems = list(merged.problems)
    model = merged.get("model")
    if request.model is None and isinstance(model, str):
        request.model = model
    request.enforce_eager = bool(merged.get("enforce_eager"))
    _compilation(request, tables)
    _sizes(request)
    _backend(request, tables)
    _speculation(request, tables)
    level = merged.get("optimization_level")
    if isinstance(level, int):
        request.level = level
        if not 0 <= level <= 3:
            _fatal(request, "bad-value", f"--optimization-level {level}: expected 0 to 3", request.span_of("optimization_level"))
    return request


def _fatal(request: Request, kind: str, message: str, span: Span | None, option: str = "") -> None:
    request.problems.append(Problem(kind, message, span or _anywhere(request), True, option))


def _anywhere(request: Request) -> Span:
    for setting in request.merged.values.values():
        return setting.span
    return request.merged.model.span if request.merged.model else Span("", 1)


def _compilation(request: Request, tables: Tables) -> None:
    setting = request.merged.values.get("compilation_config")
    if setting is None:
        return
    config = setting.value
    if isinstance(config, int) and not isinstance(config, bool):
        config = {"level" if request.version < V("0.11.1") else "mode": config}
    if isinstance(config, Symbol):
        request.mode = config
        return
    if not isinstance(config, dict):
        _fatal(request, "bad-json", f"{setting.option}: expected a JSON object, not {config!r}", setting.span, setting.option)
        return
    request.compilation = config
    _unknown_fields(request, config, "compilation_config", tables, setting)
    passes = config.get("pass_config")
    if isinstance(passes, dict):
        _unknown_fields(request, passes, "pass_config", tables, setting)
        request.sequence_parallel = bool(
            passes.get("enable_sp") or passes.get("enable_sequence_parallelism") or passes.get("enable_async_tp")
        )
        request.fuse_attention = bool(passes.get("fuse_attn_quant") or passes.get("enable_attn_fusion"))
    request.mode = _mode(request, config.get("cudagraph_mode"), setting)
    request.compile_mode = _compile_mode(request, config, setting)
    _legacy(request, config, setting)
    ops = config.get("splitting_ops")
    if isinstance(ops, list):
        request.splitting_ops = tuple(str(op) for op in ops)
    request.inductor_partition = bool(config.get("use_inductor_graph_partition"))


def _unknown_fields(request: Request, config: dict[str, Any], name: str, tables: Tables, setting: Setting) -> None:
    known = tables.fields.get(name)
    if not known:
        return
    for key in config:
        if key in known or OPEN in key:
            continue
        removed = _REMOVED_FIELDS.get(key)
        hint = f": use {removed[1]}" if removed else _close(key, known)
        if request.version >= V("0.13.0"):
            _fatal(
                request,
                "unknown-field",
                f"{name} has no field {key!r} in {request.version}{hint}; the server stops with a validation error",
                setting.span,
                key,
            )
        else:
            request.problems.append(
                Problem(
                    "dropped-field",
                    f"{name} has no field {key!r} in {request.version}: it is dropped without a word{hint}",
                    setting.span,
                    False,
                    key,
                )
            )


def _close(key: str, known: tuple[str, ...]) -> str:
    import difflib

    match = difflib.get_close_matches(key.replace("-", "_"), known, 1)
    return f" (did you mean {match[0]!r}?)" if match else ""


def _mode(request: Request, value: Any, setting: Setting) -> str | Symbol | None:
    if value is None or isinstance(value, Symbol):
        return value
    if isinstance(value, bool):
        value = int(value)
    if isinstance(value, int) and value in (0, 1, 2):
        return MODES[value]
    if isinstance(value, str) and value.upper() in MODES:
        return value.upper()
    _fatal(request, "bad-mode", f"cudagraph_mode {value!r} is none of {', '.join(MODES)}", setting.span, "cudagraph_mode")
    return None


def _compile_mode(request: Request, config: dict[str, Any], setting: Setting) -> int | Symbol | None:
    key = "level" if request.version < V("0.11.1") else "mode"
    value = config.get(key)
    if value is None and key == "mode" and request.version < V("0.18.0"):
        value = config.get("level")
        if value is not None:
            request.problems.append(
                Problem(
                    "deprecated-field",
                    "compilation_config.level is a deprecated alias of mode and is removed in 0.18.0",
                    setting.span,
                    False,
                    "level",
                )
            )
    if value is None or isinstance(value, Symbol):
        return value
    if isinstance(value, str):
        named = COMPILE_NAMES.get(value.upper())
        if named is not None and request.version >= V("0.11.1"):
            return named
        value = int(value) if value.isdigit() else value
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 3:
        return value
    _fatal(request, "bad-mode", f"compilation {key} {value!r} is not 0 to 3 in {request.version}", setting.span, key)
    return None


def _legacy(request: Request, config: dict[str, Any], setting: Setting) -> None:
    """`full_cuda_graph` and `use_cudagraph`: mapped in 0.10.1 to 0.11.0."""
    if request.version >= V("0.11.1"):
        return
    for key, wanted, mode in (("full_cuda_graph", True, "FULL"), ("use_cudagraph", False, "NONE")):
        if config.get(key) is not wanted:
            continue
        if config.get("cudagraph_mode") is not None:
            _fatal(request, "conflict", f"{key} and cudagraph_mode are mutually exclusive", setting.span, key)
        request.mode = mode
        request.problems.append(
            Problem(
                "deprecated-field", f"{key} is a deprecated alias of cudagraph_mode={mode}; it is gone in 0.11.1", setting.span, False, key
            )
        )


def _integers(value: Any) -> tuple[int, ...] | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return (value,)
    if isinstance(value, list) and all(isinstance(v, int) and not isinstance(v, bool) for v in value):
        return tuple(value)
    return None


def _sizes(request: Request) -> None:
    merged = request.merged
    for name in ("cudagraph_capture_sizes", "max_cudagraph_capture_size"):
        if merged.get(name) is not None and request.compilation.get(name) is not None:
            _fatal(
                request,
                "conflict",
                f"--{name.replace('_', '-')} and compilation_config.{name} are mutually exclusive",
                request.span_of(name),
                name,
            )
    given = merged.get("cudagraph_capture_sizes")
    request.sizes = _integers(given if given is not None else request.compilation.get("cudagraph_capture_sizes"))
    for name in ("max_cudagraph_capture_size",) if request.version >= V("0.11.1") else ():
        value = merged.get(name)
        value = value if value is not None else request.compilation.get(name)
        request.largest = value if isinstance(value, int) and not isinstance(value, bool) else None
    legacy = _integers(merged.get("cuda_graph_sizes"))
    if legacy and request.version < V("0.11.1"):
        request.legacy_sizes = legacy
    elif legacy and request.version < V("0.13.0"):
        if len(legacy) == 1:
            request.largest = legacy[0]
        else:
            request.sizes = legacy


def _backend(request: Request, tables: Tables) -> None:
    merged = request.merged
    flag = merged.get("attention_backend")
    config = merged.get("attention_config")
    nested = config.get("backend") if isinstance(config, dict) else None
    if isinstance(config, dict):
        _unknown_fields(request, config, "attention_config", tables, merged.values["attention_config"])
    if flag is not None and nested is not None:
        _fatal(
            request,
            "conflict",
            "--attention-backend and attention_config.backend are mutually exclusive",
            request.span_of("attention_config"),
        )
    value = flag if flag is not None else nested
    span = request.span_of("attention_backend", "attention_config")
    if value is None and "VLLM_ATTENTION_BACKEND" in tables.env and "VLLM_ATTENTION_BACKEND" in request.env:
        word = request.env["VLLM_ATTENTION_BACKEND"]
        value, span = word.text if word.known else None, word.span
    if not isinstance(value, str) or value.lower() in ("auto", "none", "") or OPEN in value:
        return
    name = value.upper() if request.version >= V("0.13.0") else value
    plain = name.removesuffix("_VLLM_V1") if request.version < V("0.11.0") else name
    if plain not in tables.backends:
        others = [b for b in tables.backends if tables.backends[b].kind == "attention" and tables.backends[b].builder]
        _fatal(
            request,
            "unknown-backend",
            f"{value!r} is no attention backend of {request.version}{_close(name, tuple(others))}",
            span,
            "attention_backend",
        )
        return
    request.backend = plain


def _speculation(request: Request, tables: Tables) -> None:
    merged = request.merged
    setting = merged.values.get("speculative_config")
    config = dict(setting.value) if setting is not None and isinstance(setting.value, dict) else {}
    symbolic = setting is not None and isinstance(setting.value, Symbol)
    for option, key in (("spec_method", "method"), ("spec_model", "model"), ("spec_tokens", "num_speculative_tokens")):
        value = merged.get(option)
        if value is None:
            continue
        if config.get(key) is not None:
            _fatal(
                request,
                "conflict",
                f"--{option.replace('_', '-')} and speculative_config.{key} are mutually exclusive",
                request.span_of(option),
                option,
            )
        config[key] = value
    if not config and not symbolic:
        return
    if setting is not None and config:
        known = tables.fields.get("speculative_config")
        if known and request.version >= V("0.13.0"):
            _unknown_fields(request, config, "speculative_config", tables, setting)
    method = config.get("method")
    draft = config.get("model")
    span = setting.span if setting is not None else request.span_of("spec_method", "spec_model", "spec_tokens")
    if isinstance(method, str) and tables.methods and method not in tables.methods:
        _fatal(
            request,
            "unknown-method",
            f"speculative method {method!r} is unknown to {request.version}{_close(method, tables.methods)}",
            span,
            "method",
        )
    if isinstance(method, str) and method.endswith("_mtp"):
        method = "mtp"
    if method is None and isinstance(draft, str):
        method = _method_of(draft)
    tokens = config.get("num_speculative_tokens")
    if isinstance(tokens, str) and tokens.isdigit():
        tokens = int(tokens)
    if isinstance(tokens, int) and not isinstance(tokens, bool) and tokens < 1:
        _fatal(request, "bad-value", f"num_speculative_tokens {tokens}: must be greater than 0", span, "num_speculative_tokens")
        tokens = None
    request.speculation = Speculation(
        method=method if isinstance(method, str) else None,
        tokens=tokens if isinstance(tokens, int) and not isinstance(tokens, bool) else None,
        draft=str(draft) if isinstance(draft, str) else None,
        enforce_eager=config.get("enforce_eager") is True,
        dynamic=bool(config.get("num_speculative_tokens_per_batch_size")),
        adaptive=bool(config.get("enable_adaptive_verification")),
        parallel_drafting=bool(config.get("parallel_drafting")),
        symbolic=symbolic,
        span=span,
    )


def _method_of(draft: str) -> str:
    low = draft.lower()
    for name in ("eagle3", "eagle", "dflash", "dspark", "medusa", "mtp"):
        if name in low:
            return name
    return "ngram" if low in ("ngram", "[ngram]") else "draft_model"


def connector_of(request: Request) -> dict[str, Any]:
    """`--kv-transfer-config` as a dict, empty where it is not given or symbolic."""
    value = request.merged.get("kv_transfer_config")
    if isinstance(value, str):
        try:
            value = parse_json(value)
        except ValueError:
            return {}
    return value if isinstance(value, dict) else {}
