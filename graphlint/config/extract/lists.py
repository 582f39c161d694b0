"""Optimisation-level defaults, attention ops, break points, and the architecture lists of a checkout."""

from __future__ import annotations

import ast
import re

from graphlint.config.extract.options import config_class
from graphlint.config.extract.source import Checkout, Module, strings_in

_CLASS = re.compile(r"^class (\w+)\(([^)]*)\)", re.M)
_REGISTRIES = (
    "_TEXT_GENERATION_MODELS",
    "_EMBEDDING_MODELS",
    "_CROSS_ENCODER_MODELS",
    "_SEQUENCE_CLASSIFICATION_MODELS",
    "_MULTIMODAL_MODELS",
    "_SPECULATIVE_DECODING_MODELS",
    "_LATE_INTERACTION_MODELS",
    "_REWARD_MODELS",
    "_TOKEN_CLASSIFICATION_MODELS",
)
_POOLING = {
    "_EMBEDDING_MODELS",
    "_CROSS_ENCODER_MODELS",
    "_SEQUENCE_CLASSIFICATION_MODELS",
    "_LATE_INTERACTION_MODELS",
    "_REWARD_MODELS",
    "_TOKEN_CLASSIFICATION_MODELS",
}


def extract_optimization(checkout: Checkout) -> dict[str, str]:
    """Optimisation level -> default mode, from `OPTIMIZATION_LEVEL_TO_CONFIG`; empty before 0.12.0."""
    module = checkout.module("vllm.config.vllm")
    table = module.assigns.get("OPTIMIZATION_LEVEL_TO_CONFIG") if module else None
    out = {}
    if module is not None and isinstance(table, ast.Dict):
        for key, value in zip(table.keys, table.values, strict=True):
            inner = module.assigns.get(value.id) if isinstance(value, ast.Name) else value
            for node in ast.walk(inner) if inner is not None else ():
                if isinstance(node, ast.Dict):
                    for k, v in zip(node.keys, node.values, strict=True):
                        if isinstance(k, ast.Constant) and k.value == "cudagraph_mode" and isinstance(v, ast.Attribute):
                            out[ast.unparse(key).rsplit(".O", 1)[-1] if key else "?"] = v.attr
    return out


def extract_attention_ops(checkout: Checkout) -> tuple[str, ...]:
    """`CompilationConfig._attention_ops`: the ops whose listing makes attention a split point."""
    at = config_class(checkout, "CompilationConfig")
    found = checkout.attribute(*at, "_attention_ops") if at else None
    return tuple(strings_in(found[2])) if found else ()


def extract_modes(checkout: Checkout) -> tuple[str, ...]:
    """Members of `CUDAGraphMode`."""
    at = config_class(checkout, "CUDAGraphMode")
    if at is None:
        return ()
    return tuple(
        n.targets[0].id
        for n in at[1].body
        if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name) and n.targets[0].id.isupper()
    )


def extract_break_points(checkout: Checkout) -> tuple[str, ...]:
    """Functions at which a breakable graph is split: decorated or wrapped with `eager_break_during_capture`."""
    out: list[str] = []
    for name in checkout.files_with(b"eager_break_during_capture"):
        module = checkout.module(name)
        if module is None or name.endswith("breakable_cudagraph"):
            continue
        for node in ast.walk(module.tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                decorators = [ast.unparse(d) for d in node.decorator_list]
                out += [f"{name}.{node.name}" for d in decorators if "eager_break_during_capture" in d]
            elif isinstance(node, ast.Call) and ast.unparse(node.func) == "eager_break_during_capture":
                out += [f"{name}.{a.id}" for a in node.args if isinstance(a, ast.Name)]
    return tuple(dict.fromkeys(out))


def architecture_set(checkout: Checkout, *names: str) -> tuple[str, ...]:
    """The strings of the first of these assignments that `vllm.config.vllm` has."""
    module = checkout.module("vllm.config.vllm")
    for name in names:
        if module is not None and name in module.assigns:
            return tuple(sorted(_strings(module, module.assigns[name])))
    return ()


def _strings(module: Module, node: ast.expr) -> set[str]:
    found = set(strings_in(node))
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and inner.id in module.assigns and module.assigns[inner.id] is not node:
            found |= _strings(module, module.assigns[inner.id])
    return found


def breakable_architectures(checkout: Checkout) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Architectures for which breakable graphs switch themselves on: (CUDA, ROCm)."""
    module = checkout.module("vllm.config.vllm")
    if module is None:
        return (), ()
    cuda = architecture_set(checkout, "DEFAULT_BREAKABLE_CUDAGRAPH_ARCHITECTURES")
    rocm: tuple[str, ...] = cuda
    function = module.functions.get("default_breakable_cudagraph_architectures")
    if function is not None:
        returned = [n.value for n in ast.walk(function) if isinstance(n, ast.Return) and n.value is not None]
        literal = [tuple(sorted(strings_in(v))) for v in returned if strings_in(v)]
        rocm = literal[0] if literal else cuda
    if not cuda:
        names: set[str] = set()
        for node in ast.walk(module.tree):
            if isinstance(node, ast.If) and "'VLLM_USE_BREAKABLE_CUDAGRAPH' not in" in ast.unparse(node.test):
                names |= {s for s in _strings(module, node.test) if s[:1].isupper() and not s.isupper()}
        cuda = rocm = tuple(sorted(names))
    return cuda, rocm


def piecewise_connectors(checkout: Checkout) -> dict[str, str]:
    """KV connectors that force PIECEWISE: class -> the extra-config key that decides."""
    out = {}
    for name in checkout.files_with(b"def requires_piecewise_for_cudagraph", under="vllm/distributed"):
        module = checkout.module(name)
        for cls in module.classes.values() if module else ():
            for node in cls.body:
                if isinstance(node, ast.FunctionDef) and node.name == "requires_piecewise_for_cudagraph":
                    keys = [s for r in ast.walk(node) if isinstance(r, ast.Return) and r.value is not None for s in strings_in(r.value)]
                    if keys:
                        out[cls.name] = keys[0]
                    elif "MultiConnector" in cls.name:
                        out[cls.name] = "*"
    return out


def extract_architectures(checkout: Checkout) -> dict[str, tuple[str, ...]]:
    """Architecture -> traits that change graph modes, read off the registry and the heads of the model classes.

    `hybrid` and `attention-free` come from marker base classes, `pooling` from the registry's section, `uncompiled` from the absence
    of `support_torch_compile` in the model's file and the files it builds on, `multimodal` from the section or marker.
    """
    registry = checkout.module("vllm.model_executor.models.registry")
    if registry is None:
        return {}
    texts: dict[str, str] = {}
    out: dict[str, tuple[str, ...]] = {}
    for section in _REGISTRIES:
        value = registry.assigns.get(section)
        if not isinstance(value, ast.Dict):
            continue
        for key, entry in zip(value.keys, value.values, strict=True):
            names = strings_in(entry)
            if not isinstance(key, ast.Constant) or len(names) != 2:
                continue
            out.setdefault(str(key.value), _traits(checkout, section, names[0], names[1], texts))
    return {arch: traits for arch, traits in out.items() if traits}


def _read(checkout: Checkout, module: str, texts: dict[str, str]) -> str:
    if module not in texts:
        dotted = module if module.startswith("vllm.") else f"vllm.model_executor.models.{module}"
        base = checkout.root.joinpath(*dotted.split("."))
        paths = [base.with_suffix(".py")] if base.with_suffix(".py").is_file() else sorted(base.rglob("*.py"))
        # a package holds one model per platform: each file's text is marked with the platform folder it lies in
        texts[module] = "\n".join(
            f"{_PLATFORM}{_platform(path.relative_to(base.parent).parts)}\n" + path.read_text(encoding="utf-8", errors="replace")
            for path in paths
        )
    return texts[module]


_PLATFORM = "# graphlint platform: "


def _platform(parts: tuple[str, ...]) -> str:
    return next((p for p in parts[:-1] if p in ("nvidia", "amd", "cpu", "xpu", "tpu")), "any")


def _compiled_on(text: str, platform: str) -> bool:
    """Whether the files that count on this platform (`nvidia`, `amd`) compile the model."""
    pieces = re.split(f"^{_PLATFORM}", text, flags=re.M)
    return any("support_torch_compile" in piece for piece in pieces if piece.split("\n", 1)[0] in (platform, "any"))


_FROM = re.compile(r"^from (?:vllm\.model_executor\.models\.|\.)(\w+) import (\([^)]*\)|[^\n]+)", re.M)


def _traits(checkout: Checkout, section: str, module: str, cls: str, texts: dict[str, str]) -> tuple[str, ...]:
    text = _read(checkout, module, texts)
    if not text:
        return ()
    traits = set()
    heads = dict(_CLASS.findall(text))
    bases = _all_bases(heads, cls)
    if "IsHybrid" in bases:
        traits.add("hybrid")
    if "IsAttentionFree" in bases:
        traits.add("attention-free")
    if section in _POOLING:
        traits.add("pooling")
    if section == "_MULTIMODAL_MODELS" or "SupportsMultiModal" in bases:
        traits.add("multimodal")
    if "FusedMoE" in text or "SharedFusedMoE" in text:
        traits.add("moe")
    if "MultiHeadLatentAttention" in text or "MLAModules" in text or "MLAAttention(" in text:
        traits.add("mla")
    own_package = module.startswith("vllm.models.")
    built_on = {base for _, bases in _CLASS.findall(text) for base in re.findall(r"\w+", bases)}
    reach = [text]
    for other, names in _FROM.findall(text):
        # a package of its own compiles only what its classes derive from elsewhere; older model files share whole models
        if not own_package or built_on & set(re.findall(r"\w+", names)):
            reach.append(_read(checkout, other, texts))
    if section not in _POOLING and ("multimodal" not in traits or own_package):
        for platform, trait in (("nvidia", "uncompiled"), ("amd", "uncompiled-rocm")):
            if not any(_compiled_on(t, platform) for t in reach):
                traits.add(trait)
    return tuple(sorted(traits))


def _all_bases(heads: dict[str, str], cls: str, depth: int = 6) -> set[str]:
    found: set[str] = set()
    for base in re.findall(r"\w+", heads.get(cls, "")):
        found.add(base)
        if depth and base in heads:
            found |= _all_bases(heads, base, depth - 1)
    return found
