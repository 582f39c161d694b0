"""Backend enum -> class path -> metadata builder -> declared graph support."""

from __future__ import annotations

import ast
from itertools import product

from graphlint.config.extract.guarded import guarded_values
from graphlint.config.extract.source import Checkout, ClassAt, base_name, strings_in
from graphlint.config.tables import Backend, Priority, Support

LEVELS = ("NEVER", "UNIFORM_SINGLE_TOKEN_DECODE", "UNIFORM_BATCH", "ALWAYS")
_ENUM_MODULES = ("vllm.v1.attention.backends.registry", "vllm.attention.backends.registry")
_ATTRIBUTES = ("_cudagraph_support", "cudagraph_support", "attn_cudagraph_support")


def extract_backends(checkout: Checkout) -> dict[str, Backend]:
    """All backends that a user can name, or that a platform names by class path (before 0.11.1)."""
    found: dict[str, Backend] = {}
    for name in _ENUM_MODULES:
        module = checkout.module(name)
        if module is None or "AttentionBackendEnum" not in module.classes:
            continue
        for enum, kind in (("AttentionBackendEnum", "attention"), ("MambaAttentionBackendEnum", "mamba")):
            if enum in module.classes:
                for member, path in _members(module.classes[enum]):
                    backend = _backend(checkout, path) if path else Backend(note="no class")
                    found[member] = _with_kind(backend, kind)
        if "MambaAttentionBackendEnum" not in module.classes:
            found |= _mamba_by_path(checkout)
        return found
    return _by_class_path(checkout)


def _with_kind(backend: Backend, kind: str) -> Backend:
    return Backend(**{f: getattr(backend, f) for f in backend.__struct_fields__} | {"kind": kind})


def _members(enum: ast.ClassDef) -> list[tuple[str, str]]:
    members = []
    for node in enum.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id.isupper():
            try:
                value = ast.literal_eval(node.value)
            except ValueError:
                value = ""
            members.append((node.targets[0].id, value if isinstance(value, str) else ""))
    return members


def _by_class_path(checkout: Checkout) -> dict[str, Backend]:
    """Before the enum held class paths: the paths that the platforms return, under the names of `_Backend`."""
    found: dict[str, Backend] = {}
    names: set[str] = set()
    interface = checkout.module("vllm.platforms.interface")
    if interface is not None and "_Backend" in interface.classes:
        for node in interface.classes["_Backend"].body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                names.add(node.targets[0].id)
    paths: dict[str, None] = {}
    for platform in ("cuda", "rocm", "cpu", "xpu"):
        module = checkout.module(f"vllm.platforms.{platform}")
        for text in strings_in(module.tree) if module else ():
            if text.startswith("vllm.v1.attention.backends."):
                paths[text] = None
    found |= _mamba_by_path(checkout)
    for path in paths:
        backend = _backend(checkout, path)
        if not backend.builder:
            continue
        name = _declared_name(checkout, path)
        if path.endswith("rocm_aiter_fa.AiterFlashAttentionBackend"):
            name = "ROCM_AITER_FA"
        found.setdefault(name.removesuffix("_VLLM_V1"), backend)
    for name in names:
        found.setdefault(name.removesuffix("_VLLM_V1"), Backend(note="no class"))
    return found


_MAMBA = {
    "MAMBA1": "mamba1_attn.Mamba1AttentionBackend",
    "MAMBA2": "mamba2_attn.Mamba2AttentionBackend",
    "LINEAR": "linear_attn.LinearAttentionBackend",
    "SHORT_CONV": "short_conv_attn.ShortConvAttentionBackend",
    "GDN_ATTN": "gdn_attn.GDNAttentionBackend",
}


def _mamba_by_path(checkout: Checkout) -> dict[str, Backend]:
    """The Mamba family before it had an enum of its own (0.12.0)."""
    found = {name: _backend(checkout, f"vllm.v1.attention.backends.{path}") for name, path in _MAMBA.items()}
    return {name: _with_kind(backend, "mamba") for name, backend in found.items() if backend.builder}


def _declared_name(checkout: Checkout, path: str) -> str:
    at = _class_of(checkout, path)
    found = checkout.method(*at, "get_name") if at else None
    if found is not None:
        for node in ast.walk(found[2]):
            if isinstance(node, ast.Return) and isinstance(node.value, ast.Constant):
                return str(node.value.value)
    return path.rsplit(".", 1)[1]


def _class_of(checkout: Checkout, path: str) -> ClassAt | None:
    module_name, _, cls = path.rpartition(".")
    module = checkout.module(module_name)
    return checkout.find_class(module, cls) if module is not None else None


def _backend(checkout: Checkout, path: str) -> Backend:
    at = _class_of(checkout, path)
    if at is None:
        return _composite(checkout, path) or Backend(cls=path, note="class not found")
    return _of_class(checkout, at, path)


def _of_class(checkout: Checkout, at: ClassAt, path: str) -> Backend:
    builder = _builder_of(checkout, at)
    support = builder_support(checkout, builder) if builder else ()
    return Backend(
        cls=path,
        builder=f"{builder[0].name}.{builder[1].name}" if builder else "",
        support=support or (Support("NEVER", at=f"{at[0].path}:{at[1].lineno}"),),
        mla=_flag(checkout, at, "is_mla"),
        sparse=_flag(checkout, at, "is_sparse"),
        capability=_capability(checkout, at),
        lse=_lse(checkout, at),
        dcp_varlen=_dcp_varlen(checkout, builder) if builder else False,
        note="" if builder else "no builder of its own",
    )


def _builder_of(checkout: Checkout, at: ClassAt) -> ClassAt | None:
    found = checkout.method(*at, "get_builder_cls")
    if found is None:
        return None
    module, _, function = found
    for node in ast.walk(function):
        if isinstance(node, ast.Return) and node.value is not None:
            name = base_name(node.value)
            if name is not None:
                return checkout.find_class(module, name)
    return None


def builder_support(checkout: Checkout, builder: ClassAt) -> tuple[Support, ...]:
    """The levels a builder class can answer, method before attribute, nearest definition first."""
    lineage = list(checkout.lineage(*builder))
    return tuple(dict.fromkeys(_support(checkout, lineage, 0)))


def _support(checkout: Checkout, lineage: list[ClassAt], start: int, attributes_only: bool = False) -> list[Support]:
    for index in range(start, len(lineage)):
        _, cls = lineage[index]
        if not attributes_only:
            for item in cls.body:
                if isinstance(item, ast.FunctionDef) and item.name == "get_cudagraph_support":
                    return _from_method(checkout, lineage, index, item)
    return _from_attribute(lineage)


def _from_method(checkout: Checkout, lineage: list[ClassAt], index: int, method: ast.FunctionDef) -> list[Support]:
    module = lineage[index][0]

    def inline(name: str) -> ast.FunctionDef | None:
        return module.functions.get(name)

    out: list[Support] = []
    for case in guarded_values(method, inline):
        level = _level(case.value)
        if level is not None:
            out.append(Support(level, case.when, f"{module.path}:{case.line}"))
        elif "super()" in ast.unparse(case.value):
            inner = _support(checkout, lineage, index + 1)
            out.extend(Support(s.level, (*case.when, *s.when), s.at) for s in inner)
        else:
            out.extend(Support(s.level, (*case.when, *s.when), s.at) for s in _from_attribute(lineage))
    return out


def _read_attributes(lineage: list[ClassAt]) -> set[str]:
    """The attribute that this release's base class declares, hence the one that is read."""
    for _, cls in reversed(lineage):
        declared = {t.id for item in cls.body for t in _targets(item)} & set(_ATTRIBUTES)
        if cls.name == "AttentionMetadataBuilder" and declared:
            return declared
    return set(_ATTRIBUTES)


def _targets(item: ast.stmt) -> list[ast.Name]:
    targets = item.targets if isinstance(item, ast.Assign) else [item.target] if isinstance(item, ast.AnnAssign) else []
    return [t for t in targets if isinstance(t, ast.Name)]


def _from_attribute(lineage: list[ClassAt]) -> list[Support]:
    read = _read_attributes(lineage)
    for module, cls in lineage:
        for item in cls.body:
            target = item.targets[0] if isinstance(item, ast.Assign) else item.target if isinstance(item, ast.AnnAssign) else None
            if not isinstance(target, ast.Name) or not isinstance(item, (ast.Assign, ast.AnnAssign)) or item.value is None:
                continue
            where = f"{module.path}:{item.lineno}"
            if target.id not in read:
                continue
            value = item.value
            if isinstance(value, ast.IfExp):
                test = ast.unparse(value.test)
                return [
                    Support(_level(value.body) or "?", (test,), where),
                    Support(_level(value.orelse) or "?", (f"not ({test})",), where),
                ]
            level = _level(value)
            return [Support(level, at=where)] if level else []
    return []


def _level(node: ast.expr) -> str | None:
    return node.attr if isinstance(node, ast.Attribute) and node.attr in LEVELS else None


def _composite(checkout: Checkout, path: str) -> Backend | None:
    """`X = create_composite_attention_backend(general, causal, ..., routing_policy=P)`: the minimum of the three."""
    module_name, _, name = path.rpartition(".")
    module = checkout.module(module_name)
    call = module.assigns.get(name) if module else None
    if module is None or not isinstance(call, ast.Call):
        return None
    parts: list[list[Support]] = []
    for argument in call.args[:2]:
        at = checkout.find_class(module, base_name(argument) or "")
        builder = _builder_of(checkout, at) if at else None
        parts.append(list(builder_support(checkout, builder)) if builder else [])
    for keyword in call.keywords:
        if keyword.arg == "routing_policy":
            at = checkout.find_class(module, base_name(keyword.value) or "")
            if at is not None:
                parts.append(_support(checkout, list(checkout.lineage(*at)), 0))
    if not parts or not all(parts):
        return None
    out: dict[tuple[str, tuple[str, ...]], Support] = {}
    for combination in product(*parts):
        low = min(combination, key=lambda s: LEVELS.index(s.level))
        out.setdefault((low.level, low.when), low)
    return Backend(cls=path, builder=f"{path} (composite)", support=tuple(out.values()), note="composite")


def _flag(checkout: Checkout, at: ClassAt, method: str) -> bool:
    found = checkout.method(*at, method)
    if found is None:
        return False
    return any(
        isinstance(node, ast.Return) and isinstance(node.value, ast.Constant) and node.value.value is True for node in ast.walk(found[2])
    )


def _capability(checkout: Checkout, at: ClassAt) -> str:
    found = checkout.method(*at, "supports_compute_capability")
    if found is None:
        return ""
    returns = [n for n in ast.walk(found[2]) if isinstance(n, ast.Return) and n.value is not None]
    if len(returns) != 1 or returns[0].value is None:
        return ""
    text = ast.unparse(returns[0].value)
    return "" if text == "True" or "capability" not in text or "super" in text else text


def _lse(checkout: Checkout, at: ClassAt) -> bool | None:
    found = checkout.method(*at, "get_impl_cls")
    for node in ast.walk(found[2]) if found else ():
        if found and isinstance(node, ast.Return) and node.value is not None:
            impl = checkout.find_class(found[0], base_name(node.value) or "")
            value = checkout.attribute(*impl, "can_return_lse_for_decode") if impl else None
            if value is not None:
                return isinstance(value[2], ast.Constant) and value[2].value is True
    return None


def _dcp_varlen(checkout: Checkout, builder: ClassAt) -> bool:
    for _, cls in checkout.lineage(*builder):
        for node in ast.walk(cls):
            if isinstance(node, ast.keyword) and node.arg == "supports_dcp_with_varlen":
                return not (isinstance(node.value, ast.Constant) and node.value.value is False)
    return False


def extract_builders(checkout: Checkout, known: set[str]) -> dict[str, Backend]:
    """Metadata builders behind no enum name, whose level joins the minimum all the same."""
    found: dict[str, Backend] = {}
    for name in checkout.files_with(b"cudagraph_support"):
        module = checkout.module(name)
        for cls in _builders_in(module.tree) if module else ():
            key = f"{name}.{cls.name}"
            if module is None or key in known:
                continue
            support = builder_support(checkout, (module, cls))
            if support and not _is_base(cls):
                found[key] = Backend(cls=key, builder=key, support=support, kind="builder")
    return found


def _is_base(cls: ast.ClassDef) -> bool:
    return cls.name in ("AttentionMetadataBuilder",) or cls.name.startswith("Base") or cls.name.startswith("Composite")


def _builders_in(tree: ast.Module) -> list[ast.ClassDef]:
    out = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and "Builder" in node.name:
            names = {getattr(i, "name", None) for i in node.body}
            attributes = {t.id for item in node.body for t in _targets(item)}
            if "get_cudagraph_support" in names or attributes & set(_ATTRIBUTES):
                out.append(node)
    return out


def extract_priorities(checkout: Checkout) -> tuple[Priority, ...]:
    """The order in which the CUDA platform tries backends when the user names none."""
    module = checkout.module("vllm.platforms.cuda")
    function = module.functions.get("_get_backend_priorities") if module else None
    if function is None:
        return ()
    out = []
    for case in guarded_values(function, limit=64):
        names = [n.attr for n in ast.walk(case.value) if isinstance(n, ast.Attribute) and n.attr.isupper()]
        starred = _conditional_heads(case.value)
        if starred:
            test, extra = starred
            out.append(Priority((*case.when, test), tuple(dict.fromkeys(_ordered(case.value)))))
            out.append(Priority((*case.when, f"not ({test})"), tuple(n for n in dict.fromkeys(_ordered(case.value)) if n not in extra)))
        elif names:
            out.append(Priority(case.when, tuple(dict.fromkeys(_ordered(case.value)))))
    return tuple(out)


def _ordered(node: ast.expr) -> list[str]:
    found = [n for n in ast.walk(node) if isinstance(n, ast.Attribute) and n.attr.isupper()]
    found.sort(key=lambda n: (n.lineno, n.col_offset))
    return [n.attr for n in found]


def _conditional_heads(node: ast.expr) -> tuple[str, set[str]] | None:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Starred) and isinstance(inner.value, ast.IfExp):
            return ast.unparse(inner.value.test), set(_ordered(inner.value.body))
    return None
