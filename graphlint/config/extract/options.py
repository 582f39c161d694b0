"""Command-line options, configuration fields, environment names and speculative methods of a checkout."""

from __future__ import annotations

import ast

from graphlint.config.extract.source import Checkout, ClassAt, Module, strings_in
from graphlint.config.tables import Flag, FlagKind

_FRONTEND_CLASSES = ("BaseFrontendArgs", "FrontendArgs")
#: argument name -> how many words it takes, where the source calls `add_argument` with plain keywords
_ACTIONS: dict[str, FlagKind] = {"store_true": "flag", "store_false": "flag"}
_CONFIGS = {
    "compilation_config": "CompilationConfig",
    "pass_config": "PassConfig",
    "attention_config": "AttentionConfig",
    "speculative_config": "SpeculativeConfig",
    "kv_transfer_config": "KVTransferConfig",
    "kernel_config": "KernelConfig",
}


def config_class(checkout: Checkout, name: str) -> ClassAt | None:
    """The configuration class of this name: re-exported by `vllm.config`, or in one of its usual modules."""
    for place in ("vllm.config", "vllm.config.compilation", "vllm.config.vllm"):
        module = checkout.module(place)
        found = checkout.find_class(module, name) if module is not None else None
        if found is not None:
            return found
    return None


def fields_of(checkout: Checkout, at: ClassAt) -> dict[str, ast.expr]:
    """Annotated fields of a dataclass and its bases: name -> annotation."""
    found: dict[str, ast.expr] = {}
    for _, cls in reversed(list(checkout.lineage(*at))):
        for node in cls.body:
            if not (isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)):
                continue
            if not ast.unparse(node.annotation).startswith(("ClassVar", "'ClassVar")):
                found[node.target.id] = node.annotation
    return found


def extract_fields(checkout: Checkout) -> dict[str, tuple[str, ...]]:
    """Field names of the configuration objects that users write as JSON."""
    out = {}
    for key, name in _CONFIGS.items():
        at = config_class(checkout, name)
        if at is not None:
            out[key] = tuple(sorted(f for f in fields_of(checkout, at) if not f.startswith("_")))
    return out


def extract_env(checkout: Checkout) -> tuple[str, ...]:
    """Names in `vllm.envs.environment_variables`."""
    module = checkout.module("vllm.envs")
    value = module.assigns.get("environment_variables") if module else None
    if not isinstance(value, ast.Dict):
        return ()
    return tuple(sorted(k.value for k in value.keys if isinstance(k, ast.Constant) and isinstance(k.value, str)))


def extract_methods(checkout: Checkout) -> tuple[str, ...]:
    """Values of `speculative_config.method` that the release knows."""
    module = checkout.module("vllm.config.speculative") or checkout.module("vllm.config")
    if module is None or "SpeculativeMethod" not in module.assigns:
        return ()
    names: dict[str, None] = {}
    pending = [module.assigns["SpeculativeMethod"]]
    while pending:
        node = pending.pop()
        for name in strings_in(node):
            names[name] = None
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and inner.id in module.assigns and inner.id != "SpeculativeMethod":
                pending.append(module.assigns[inner.id])
    return tuple(sorted(names))


def extract_flags(checkout: Checkout) -> dict[str, Flag]:
    """Options of `vllm serve`: engine arguments, front-end arguments, and the sub-command's own."""
    flags: dict[str, Flag] = {}
    engine = checkout.module("vllm.engine.arg_utils")
    if engine is not None:
        _from_calls(checkout, engine, flags)
    for name in checkout.files_with(b"class FrontendArgs", under="vllm/entrypoints"):
        module = checkout.module(name)
        if module is None:
            continue
        for cls in _FRONTEND_CLASSES:
            if cls in module.classes:
                for field, annotation in fields_of(checkout, (module, module.classes[cls])).items():
                    _add(flags, (f"--{field.replace('_', '-')}",), field, _kind(annotation), _choices(module, annotation))
        _from_calls(checkout, module, flags)
    for name in ("vllm.entrypoints.cli.serve", "vllm.entrypoints.utils", "vllm.entrypoints.serve.utils.api_utils"):
        module = checkout.module(name)
        if module is not None:
            _from_calls(checkout, module, flags)
    for option in ("--allowed-origins", "--allowed-methods", "--allowed-headers", "--middleware"):
        if option in flags:
            flags[option] = Flag(flags[option].dest)
    _inverses(checkout, flags)
    flags.setdefault("--config", Flag("config"))
    flags.setdefault("--help", Flag("help", "flag"))
    flags.setdefault("-h", Flag("help", "flag"))
    return flags


def _inverses(checkout: Checkout, flags: dict[str, Flag]) -> None:
    """`EnableDisableAction` (0.32.0 and later): `--enable-x` is accepted as `--disable-x` with the opposite value, and the reverse."""
    module = checkout.module("vllm.utils.argparse_utils")
    if module is None or "EnableDisableAction" not in module.classes:
        return
    for option, flag in list(flags.items()):
        for prefix, inverse in (("--enable-", "--disable-"), ("--disable-", "--enable-")):
            if flag.kind == "bool" and option.startswith(prefix):
                flags.setdefault(inverse + option.removeprefix(prefix), Flag(flag.dest, "off"))


def _from_calls(checkout: Checkout, module: Module, flags: dict[str, Flag]) -> None:
    kwargs_of: dict[str, str] = {}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and isinstance(node.targets[0], ast.Name):
            call = node.value
            if isinstance(call.func, ast.Name) and call.func.id == "get_kwargs" and call.args and isinstance(call.args[0], ast.Name):
                kwargs_of[node.targets[0].id] = call.args[0].id
    cache: dict[str, tuple[Module, dict[str, ast.expr]]] = {}
    for node in ast.walk(module.tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument"):
            continue
        options = tuple(a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str) and a.value[:1] == "-")
        if not options:
            continue
        dest = max(options, key=len).lstrip("-").replace("-", "_")
        kind: FlagKind = "value"
        choices: tuple[str, ...] = ()
        for keyword in node.keywords:
            if keyword.arg is None:
                kind, choices = _expanded(checkout, keyword.value, kwargs_of, cache, kind, choices)
            elif keyword.arg == "action":
                text = ast.unparse(keyword.value)
                kind = "bool" if "BooleanOptional" in text else _ACTIONS.get(text.strip("'\""), kind)
            elif keyword.arg == "nargs" and isinstance(keyword.value, ast.Constant):
                kind = "optional" if keyword.value.value == "?" else "list"
            elif keyword.arg == "dest" and isinstance(keyword.value, ast.Constant):
                dest = str(keyword.value.value)
        _add(flags, options, dest, kind, choices)


def _expanded(
    checkout: Checkout,
    value: ast.expr,
    kwargs_of: dict[str, str],
    cache: dict[str, tuple[Module, dict[str, ast.expr]]],
    kind: FlagKind,
    choices: tuple[str, ...],
) -> tuple[FlagKind, tuple[str, ...]]:
    """`**model_kwargs["enforce_eager"]`: the kind that `get_kwargs` derives from the field's annotation."""
    for node in ast.walk(value):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and isinstance(node.slice, ast.Constant):
            owner = kwargs_of.get(node.value.id)
            if owner is None:
                continue
            if owner not in cache:
                at = config_class(checkout, owner)
                cache[owner] = (at[0], fields_of(checkout, at)) if at else (Module("", "", ast.Module([], [])), {})
            module, fields = cache[owner]
            annotation = fields.get(str(node.slice.value))
            if annotation is not None:
                return _kind(annotation), _choices(module, annotation)
    return kind, choices


def _kind(annotation: ast.expr) -> FlagKind:
    text = ast.unparse(annotation).strip("'\"")
    names = [t.strip() for t in text.replace("Optional[", "").split("|")]
    bare = {n.split("[")[0].strip("]") for n in names}
    if "bool" in bare:
        return "optional" if "str" in bare else "bool"
    if text.startswith(("list[", "tuple[", "set[", "List[", "Optional[list")) or bare & {"list", "tuple", "set"}:
        return "list"
    if "dict" in bare or any(n.endswith("Config") for n in bare):
        return "json"
    return "value"


def _choices(module: Module, annotation: ast.expr) -> tuple[str, ...]:
    found: list[str] = []
    pending: list[ast.AST] = [annotation]
    seen: set[str] = set()
    while pending:
        node = pending.pop()
        for inner in ast.walk(node):
            if isinstance(inner, ast.Subscript) and ast.unparse(inner.value).endswith("Literal"):
                found.extend(strings_in(inner.slice))
            if isinstance(inner, ast.Name) and inner.id in module.assigns and inner.id not in seen:
                seen.add(inner.id)
                pending.append(module.assigns[inner.id])
    return tuple(dict.fromkeys(found))


def _add(flags: dict[str, Flag], options: tuple[str, ...], dest: str, kind: FlagKind, choices: tuple[str, ...]) -> None:
    for option in options:
        flags.setdefault(option, Flag(dest, kind, choices))
        if kind == "bool" and option.startswith("--"):
            flags.setdefault("--no-" + option[2:], Flag(dest, "flag"))
