"""Which attention backends a deployment gets, and the level of graph support that each declares there.

Levels come from the release's tables; their conditions are source text that is evaluated with the facts at hand. A condition over
facts that are not known is asked for, in words.
"""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import Any, NamedTuple

from graphlint.config.modes import LEVELS, Level
from graphlint.config.request import Request
from graphlint.config.situation import Situation
from graphlint.config.sizes import StartupError
from graphlint.config.tables import Backend, Support
from graphlint.config.versions import V


class _Unknown:
    def __repr__(self) -> str:
        return "unknown"


UNKNOWN = _Unknown()


class Group(NamedTuple):
    """One attention group: the backend's name, its level here, and the source of the level."""

    backend: str
    level: Level
    at: str


class SupportResult(NamedTuple):
    """All groups, the weakest first in `weakest`; `chosen` is the name of the main backend, `explicit` when the user named it."""

    groups: list[Group]
    weakest: Group
    chosen: str
    explicit: bool


def flash_attention_version(situation: Situation) -> int | None:
    """`get_flash_attn_version()` as evaluated at class definition: 2, 3, 4 or None."""
    if situation.platform != "cuda":
        return 2 if situation.platform == "xpu" else None
    major = situation.capability[0]
    version = situation.request.version
    out = 3 if major == 9 else 4 if major == 10 and version >= V("0.17.0") else 2
    forced = _attention_option(situation.request, "flash_attn_version")
    if forced is None and "VLLM_FLASH_ATTN_VERSION" in situation.tables.env:
        forced = situation.request.flag_env("VLLM_FLASH_ATTN_VERSION")
    if forced is not None and str(forced).isdigit():
        out = int(forced)
    if major >= 10 and out == 3:
        out = 4 if major == 10 and version >= V("0.17.0") else 2
    if out == 4 and situation.request.flag_env("VLLM_BATCH_INVARIANT") not in (None, "0"):
        out = 2
    return out


def _attention_option(request: Request, name: str) -> Any:
    config = request.given("attention_config")
    return config.get(name) if isinstance(config, dict) else None


def trtllm_usable(situation: Situation) -> bool:
    """`can_use_trtllm_attention` for decode. The kernels' download site is taken to be reachable."""
    request = situation.request
    if request.flag_env("VLLM_BATCH_INVARIANT") not in (None, "0"):
        return False
    forced = _attention_option(request, "use_trtllm_attention")
    if forced is False or ("VLLM_USE_TRTLLM_ATTENTION" in situation.tables.env and request.flag_env("VLLM_USE_TRTLLM_ATTENTION") == "0"):
        return False
    major = situation.capability[0]
    if not (major == 10 or (major == 9 and request.version >= V("0.25.0")) or (major == 12 and request.version >= V("0.28.0"))):
        return False
    situation.assumed.setdefault("cubins", "FlashInfer's kernel downloads are reachable")
    heads, kv_heads = situation.model.num_heads, situation.model.num_kv_heads
    return not (heads and kv_heads and heads % kv_heads)


class _Evaluator:
    """Three-valued evaluation of extracted conditions."""

    def __init__(self, situation: Situation) -> None:
        self.situation = situation

    def value(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.BoolOp):
            return self._bool(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self.value(node.operand)
            return UNKNOWN if inner is UNKNOWN else not inner
        if isinstance(node, ast.Compare):
            return self._compare(node)
        if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            items = [self.value(e) for e in node.elts]
            return UNKNOWN if any(i is UNKNOWN for i in items) else tuple(items)
        if isinstance(node, ast.Call):
            return self._call(node)
        return self._name(_source(node))

    def _bool(self, node: ast.BoolOp) -> Any:
        stop = isinstance(node.op, ast.Or)
        unknown = False
        for operand in node.values:
            value = self.value(operand)
            if value is UNKNOWN:
                unknown = True
            elif bool(value) is stop:
                return stop
        return UNKNOWN if unknown else not stop

    def _compare(self, node: ast.Compare) -> Any:
        left = self.value(node.left)
        result = True
        for op, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.value(right_node)
            if left is UNKNOWN or right is UNKNOWN:
                return UNKNOWN
            try:
                result = result and _COMPARE[type(op)](left, right)
            except (KeyError, TypeError):
                return UNKNOWN
            left = right
        return result

    def _call(self, node: ast.Call) -> Any:
        name = _source(node.func)
        arguments = [self.value(a) for a in node.args]
        short = name.rsplit(".", 1)[-1]
        situation = self.situation
        if short == "is_device_capability" and arguments:
            wanted = arguments[0] if isinstance(arguments[0], tuple) else divmod(arguments[0], 10)
            return situation.platform == "cuda" and situation.capability == tuple(wanted)
        if short == "is_device_capability_family" and arguments:
            return situation.platform == "cuda" and situation.capability[0] == arguments[0] // 10
        if short == "has_device_capability" and arguments:
            wanted = arguments[0] if isinstance(arguments[0], tuple) else divmod(arguments[0], 10)
            return situation.platform == "cuda" and situation.capability >= tuple(wanted)
        if short in ("is_xpu", "is_rocm", "is_cpu", "is_cuda"):
            return situation.platform == short[3:]
        if short == "DeviceCapability":
            return tuple(arguments)
        if short == "get_flash_attn_version":
            return flash_attention_version(situation)
        if short == "can_use_trtllm_attention":
            return trtllm_usable(situation)
        if short == "_is_xqa_head_dim_supported":
            return situation.model.head_dim in (None, 64, 128, 256)
        if short == "isinstance":
            return True
        if short in ("iter_layer_specs", "values"):
            return (1,)
        if short == "len":
            return 1
        if short == "is_quantized_kv_cache":
            return str(situation.request.given("kv_cache_dtype") or "auto") not in ("auto", "bfloat16", "float16")
        if short == "getattr" and len(node.args) == 3:
            return situation.request.speculation is not None and situation.request.speculation.method == "dspark"
        return UNKNOWN

    def _name(self, text: str) -> Any:
        situation, request = self.situation, self.situation.request
        speculation = request.speculation
        if text.endswith("decode_context_parallel_size"):
            return request.number("decode_context_parallel_size", 1)
        if text.endswith("attention_config.use_non_causal") or text == "use_non_causal":
            return bool(_attention_option(request, "use_non_causal"))
        if text.endswith("speculative_config"):
            return None if speculation is None else speculation
        if text.endswith("num_speculative_tokens"):
            return None if speculation is None else situation.query_len - 1
        if text.endswith("enable_adaptive_verification"):
            return speculation is not None and speculation.adaptive
        if text.endswith("is_nvfp4"):
            return "nvfp4" in str(request.given("kv_cache_dtype") or "")
        if text in ("capability", "device_capability"):
            return situation.capability
        if text.endswith("capability.major"):
            return situation.capability[0]
        if text.endswith("capability.minor"):
            return situation.capability[1]
        if text == "use_mla":
            return situation.trait("mla", "a multi-head latent attention model", ask=False)
        if text == "use_mm_prefix":
            return bool(situation.model.mm_prefix)
        if text == "num_heads":
            heads = situation.model.num_heads
            return heads // max(request.number("tensor_parallel_size", 1), 1) if heads else None
        if text == "head_size":
            return situation.model.head_dim
        if text == "kv_cache_dtype":
            return str(request.given("kv_cache_dtype") or "auto")
        if text == "kv_specs":
            return (1,)
        return UNKNOWN


_COMPARE: dict[type[ast.cmpop], Any] = {
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
    ast.Is: lambda a, b: a is b,
    ast.IsNot: lambda a, b: a is not b,
}


def _source(node: ast.expr) -> str:
    """`ast.unparse`, remembered on the node: conditions are evaluated many times."""
    text: str | None = getattr(node, "_graphlint_source", None)
    if text is None:
        text = ast.unparse(node)
        node._graphlint_source = text  # type: ignore[attr-defined]
    return text


@lru_cache(maxsize=2048)
def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def holds(conditions: tuple[str, ...], situation: Situation) -> Any:
    """True, False or UNKNOWN for a conjunction of extracted conditions."""
    facts = situation.condition_facts()
    if facts is None:
        return _holds(conditions, situation)
    key = (conditions, facts)
    if key not in _held:
        if len(_held) > 50_000:
            _held.clear()
        _held[key] = _holds(conditions, situation)
    return _held[key]


_held: dict[tuple[object, ...], Any] = {}


def _holds(conditions: tuple[str, ...], situation: Situation) -> Any:
    evaluator = _Evaluator(situation)
    unknown = False
    for text in conditions:
        value = evaluator.value(_parsed(text))
        if value is UNKNOWN:
            unknown = True
        elif not value:
            return False
    return UNKNOWN if unknown else True


def declared_level(name: str, backend: Backend, situation: Situation) -> Group:
    """The level that a backend's builder answers here; asked for where its condition is not decided."""
    open_cases: list[tuple[Support, str]] = []
    for case in backend.support:
        value = holds(case.when, situation)
        if value is True:
            open_cases.append((case, "otherwise" if open_cases else "always"))
            break
        if value is UNKNOWN:
            open_cases.append((case, " and ".join(case.when)))
    if not open_cases:
        return Group(name, "NEVER", backend.builder)
    levels = {case.level for case, _ in open_cases}
    if len(levels) == 1:
        case = open_cases[0][0]
    else:
        # the strongest first: what nobody can know from here must not raise an alarm
        ranked = sorted(open_cases, key=lambda item: -LEVELS.index(item[0].level) if item[0].level in LEVELS else 1)
        options = [(c, f"{c.level} if {_short(label)}") for c, label in ranked]
        case = situation.choices.pick(f"support of {name}", options)
    level: Level = next((known for known in LEVELS if known == case.level), "NEVER")
    return Group(name, level, case.at)


def _short(text: str) -> str:
    return text if len(text) <= 90 else text[:87] + "..."


def resolve_groups(situation: Situation) -> SupportResult:
    """All attention groups of the deployment. Raises StartupError where the chosen backend refuses the device."""
    request, tables = situation.request, situation.tables
    explicit = situation.request.backend is not None
    chosen = request.backend or situation.given.backend or select_backend(situation)
    backend = tables.backends.get(chosen)
    if explicit and backend is not None:
        _check_explicit(chosen, backend, situation)
    groups: list[Group] = []
    if situation.given.support is not None:
        groups.append(Group(chosen, next(level for level in LEVELS if level == situation.given.support), "--assume"))
    elif backend is not None:
        groups.append(declared_level(chosen, backend, situation))
    else:
        groups.append(Group(chosen, "NEVER", "not in the release's registry"))
    if situation.given.support is None:
        groups.extend(_further(situation))
    weakest = min(groups, key=lambda g: LEVELS.index(g.level))
    return SupportResult(groups, weakest, chosen, explicit)


def _further(situation: Situation) -> list[Group]:
    """Groups beside the main one: linear attention of hybrid models, the sparse indexer, chunked local attention."""
    out: list[Group] = []
    model, tables = situation.model, situation.tables
    if situation.trait("hybrid", "a hybrid (linear attention or Mamba) model", ask=False):
        name = model.linear_attention or "GDN_ATTN"
        if name in tables.backends:
            out.append(declared_level(name, tables.backends[name], situation))
    if model.sparse and model.mla and not (model.architecture or "").startswith("DeepseekV4"):
        for key, builder in tables.builders.items():
            if key.endswith("DeepseekV32IndexerMetadataBuilder"):
                evaluated = declared_level("the sparse indexer", builder, _Quiet(situation))
                out.append(evaluated)
    if model.chunked_attention:
        for key, builder in tables.builders.items():
            if "ChunkedLocal" in key:
                out.append(declared_level("chunked local attention", builder, situation))
    return out


class _Quiet(Situation):
    """A situation whose open conditions are answered by the weakest level instead of being asked."""

    def __init__(self, base: Situation) -> None:
        self.__dict__.update(base.__dict__)
        self.choices = _Weakest()  # type: ignore[assignment]


class _Weakest:
    def pick(self, question: str, options: list[tuple[Any, str]]) -> Any:
        return min((o[0] for o in options), key=lambda c: LEVELS.index(c.level) if isinstance(c, Support) else 0)


def _check_explicit(name: str, backend: Backend, situation: Situation) -> None:
    if not backend.builder and backend.note != "composite" and name != "CUSTOM":
        raise StartupError("ValueError", f"{name} has no decoder backend in {situation.request.version}", "AttentionBackendEnum.get_class")
    if situation.platform != "cuda" or situation.request.version < V("0.11.1") or situation.given.gpu is None:
        return
    if backend.capability and _Evaluator(situation).value(_parsed(backend.capability)) is False:
        raise StartupError(
            "ValueError",
            f"--attention-backend {name} does not run on {situation.gpu.label} (needs {backend.capability}); "
            "an explicit backend never falls back",
            "CudaPlatform.get_attn_backend_cls",
        )
    model = situation.model
    if (
        model.source == "model config"
        and backend.kind == "attention"
        and name != "CUSTOM"
        and not backend.note
        and bool(model.mla) != backend.mla
    ):
        raise StartupError(
            "ValueError",
            f"--attention-backend {name} does not fit the model's attention (multi-head latent: {bool(model.mla)})",
            "CudaPlatform.get_attn_backend_cls",
        )


def select_backend(situation: Situation) -> str:
    """The backend that the platform picks when the user names none."""
    platform = situation.platform
    mla = situation.trait("mla", "a multi-head latent attention model", ask=False)
    sparse = bool(situation.model.sparse) and mla
    if (situation.model.architecture or "").startswith("DeepseekV4"):
        return _deepseek_v4(situation)
    if platform == "cpu":
        return "CPU_ATTN" if "CPU_ATTN" in situation.tables.backends else "TORCH_SDPA"
    if platform == "xpu":
        return "FLASH_ATTN" if not mla else "TRITON_MLA"
    if platform == "rocm":
        return ("ROCM_AITER_MLA_SPARSE" if sparse else "TRITON_MLA") if mla else "TRITON_ATTN"
    if situation.request.version < V("0.11.1"):
        return _select_v010(situation, mla, sparse)
    dcp = situation.request.number("decode_context_parallel_size", 1) > 1 and situation.request.version >= V("0.30.0")
    for priority in situation.tables.priorities:
        if holds(priority.when, situation) is not True:
            continue
        for name in priority.backends:
            backend = situation.tables.backends.get(name)
            if backend is None or backend.sparse != sparse or (backend.note == "composite" and not situation.model.mm_prefix):
                continue
            if backend.capability and _Evaluator(situation).value(_parsed(backend.capability)) is not True:
                continue
            if (dcp and backend.lse is False) or name in _NEEDS_MORE:
                continue
            return name
    return "FLASHMLA_SPARSE" if sparse else "TRITON_MLA" if mla else _select_v010(situation, mla, sparse)


#: backends that the priorities name but that take only special dimensions or dtypes
_NEEDS_MORE = {"TOKENSPEED_MLA", "TURBOQUANT", "FLASH_ATTN_MLA_SPARSE_FA4"}


def _select_v010(situation: Situation, mla: bool, sparse: bool) -> str:
    major = situation.capability[0]
    if mla:
        if sparse:
            return "FLASHMLA_SPARSE"
        return "CUTLASS_MLA" if major == 10 else "FLASHMLA" if major == 9 else "TRITON_MLA"
    if major == 10:
        return "FLASHINFER"
    if situation.capability < (8, 0):
        return "FLEX_ATTENTION"
    return "FLASH_ATTN"


def _deepseek_v4(situation: Situation) -> str:
    suffix = "DSV41" if "V41" in (situation.model.architecture or "") and situation.request.version >= V("0.33.0") else "DSV4"
    prefix = (
        "ROCM_FLASHMLA_SPARSE"
        if situation.platform == "rocm"
        else "FLASHINFER_MLA_SPARSE"
        if situation.capability[0] == 12
        else "FLASHMLA_SPARSE"
    )
    return f"{prefix}_{suffix}"
