"""CUDA-graph modes as a domain: the set of modes an expression may have."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from graphlint.facts.expr import Expr, children, strip
from graphlint.facts.kernels import Span
from graphlint.project.effect import Site
from graphlint.project.index import FunctionDef, Index
from graphlint.project.types import Types
from graphlint.project.views import Views

#: members of vLLM's CUDAGraphMode (vllm/config/compilation.py)
ALL = frozenset({"NONE", "PIECEWISE", "FULL", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE"})
#: what decode batches run in under each mode (CUDAGraphMode.decode_mode)
DECODE = {"NONE": "NONE", "PIECEWISE": "PIECEWISE", "FULL": "FULL", "FULL_DECODE_ONLY": "FULL", "FULL_AND_PIECEWISE": "FULL"}
#: what mixed batches run in (CUDAGraphMode.mixed_mode)
MIXED = {"NONE": "NONE", "PIECEWISE": "PIECEWISE", "FULL": "FULL", "FULL_DECODE_ONLY": "NONE", "FULL_AND_PIECEWISE": "PIECEWISE"}


def modes_of(expr: Expr) -> frozenset[str]:
    """Modes that `expr` may evaluate to; all of them when nothing narrows it."""
    expr = strip(expr)
    op = expr[0]
    if op == "attr" and expr[2] in ALL and "Mode" in _name(expr[1]):
        return frozenset({expr[2]})
    if op in ("if", "phi", "or", "and"):
        parts = expr[2:] if op == "if" else expr[1:]
        joined: frozenset[str] = frozenset()
        for part in parts:
            joined |= modes_of(part)
        return joined
    if op == "call":
        func = strip(expr[1])
        if func[0] == "attr" and func[2] in ("decode_mode", "mixed_mode"):
            table = DECODE if func[2] == "decode_mode" else MIXED
            return frozenset(table[mode] for mode in modes_of(func[1]))
    return ALL


def allows_piecewise(expr: Expr) -> bool:
    """A manager given this mode may capture or dispatch PIECEWISE graphs."""
    return bool(modes_of(expr) & {"PIECEWISE", "FULL_AND_PIECEWISE"})


def mentions_full(expr: Expr) -> bool:
    """A condition that tests for the FULL mode, directly or through the local that holds the test."""
    stack = [expr]
    while stack:
        node = stack.pop()
        if node[0] == "attr" and node[2] in ("FULL", "FULL_DECODE_ONLY", "has_full_cudagraphs", "PIECEWISE"):
            return True
        if node[0] in ("let", "local", "param", "attr"):
            name = str(node[2] if node[0] in ("param", "attr") else node[1]).lower()
            if ("full" in name and ("graph" in name or "cg" in name or "cuda" in name)) or name in ("pad_attn", "for_cudagraph_capture"):
                return True
        stack.extend(children(node))
    return False


def _name(expr: Expr) -> str:
    expr = strip(expr)
    return str(expr[2] if expr[0] in ("attr", "param") else expr[1] if expr[0] in ("global", "local") else "")


class GraphManager(NamedTuple):
    """The construction of an object that captures graphs for one decode query length in one mode."""

    site: Site
    origin: Site
    class_name: str
    mode: Expr
    modes: frozenset[str]
    query_len: int | None
    #: the query length is a named argument or its parameter is (a positional 1 can mean anything else)
    query_len_named: bool


class ShadowedMode(NamedTuple):
    """A mode parameter that is assigned from the configuration before its first use."""

    site: Site
    parameter_site: Site
    name: str
    value: Expr


_MODE_NAME = re.compile(r"(.*_)?(cuda_?graph|cg|runtime|graph)_?(runtime_)?mode|cudagraph_runtime_mode")
_QUERY_LEN = re.compile(r"(.*_)?(query_len|qlen|q_len)")


def graph_managers(index: Index, types: Types, views: Views) -> Iterator[GraphManager]:
    """Constructions `Manager(..., mode, query_len)` of classes whose `__init__` takes a CUDA-graph mode and a decode query length."""
    for function in index.functions.values():
        for event in function.fact.events:
            if event.kind != "call":
                continue
            target = types.callee(event.a[1], function.owner)
            if target is None or target[0] != "class":
                continue
            init = index.method(target[1], "__init__")
            if init is None:
                continue
            names = [param.name for param in index.functions[init].fact.params]
            mode_name = next((name for name in names if _MODE_NAME.fullmatch(name)), None)
            length_name = next((name for name in names if _QUERY_LEN.fullmatch(name)), None)
            if mode_name is None or length_name is None:
                continue
            bound = views.bind_arguments(init, event.a, event.a)
            mode, length = bound.get(("param", init, mode_name)), bound.get(("param", init, length_name))
            if mode is None or length is None:
                continue
            number = strip(length)
            site = Site(function.path, event.span, function.id, event.guards)
            yield GraphManager(
                site,
                _origin(function, mode, site),
                index.classes[target[1]].name,
                mode,
                modes_of(mode),
                number[1] if number[0] == "const" and isinstance(number[1], int) else None,
                True,
            )


def _origin(function: FunctionDef, mode: Expr, site: Site) -> Site:
    name = mode[1] if mode[0] == "let" else None
    for binding in reversed(function.fact.bindings):
        if binding.name == name and binding.span.line <= site.span.line:
            return Site(function.path, binding.span, function.id)
    return Site(function.path, _head(function), function.id)


def shadowed_modes(index: Index) -> Iterator[ShadowedMode]:
    """Parameters that hold a mode and are assigned from a configuration field before any use."""
    for function in index.functions.values():
        fact = function.fact
        modes = {
            param.name
            for param in fact.params
            if _MODE_NAME.fullmatch(param.name) or (param.annotation is not None and "Mode" in _name(param.annotation))
        }
        seen: set[str] = set()
        for binding in fact.bindings:
            if binding.name not in modes or binding.name in seen:
                continue
            seen.add(binding.name)
            parameter: Expr = ("param", function.id, binding.name)
            if not _from_config(binding.value, binding.name) or _mentions(binding.value, parameter):
                continue
            if any(_mentions(guard, parameter) for guard in binding.guards) or _used_before(function, parameter, binding.span.line):
                continue
            yield ShadowedMode(
                Site(function.path, binding.span, function.id),
                Site(function.path, _head(function), function.id),
                binding.name,
                binding.value,
            )


def _from_config(value: Expr, name: str) -> bool:
    """`...config.<mode>`: a field of a configuration object."""
    value = strip(value)
    if value[0] != "attr" or not _MODE_NAME.fullmatch(value[2]):
        return False
    base = strip(value[1])
    return "config" in _name(base)


def _used_before(function: FunctionDef, parameter: Expr, line: int) -> bool:
    for event in function.fact.events:
        if event.span.line >= line:
            continue
        if any(_mentions(part, parameter) for part in (event.a, event.b, *event.guards) if part is not None):
            return True
    return False


def _mentions(expr: Expr, wanted: Expr) -> bool:
    stack = [expr]
    while stack:
        node = stack.pop()
        if node == wanted:
            return True
        stack.extend(children(node))
    return False


def _head(function: FunctionDef) -> Span:
    span = function.fact.span
    return Span(span.line, span.column, span.line, span.column)
