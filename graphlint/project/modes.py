"""CUDA-graph modes as a domain: the set of modes an expression may have."""

from __future__ import annotations

from graphlint.facts.expr import Expr, children, strip

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
            if "full" in name and ("graph" in name or "cg" in name or "cuda" in name) or name in ("pad_attn", "for_cudagraph_capture"):
                return True
        stack.extend(children(node))
    return False


def _name(expr: Expr) -> str:
    expr = strip(expr)
    return str(expr[2] if expr[0] in ("attr", "param") else expr[1] if expr[0] in ("global", "local") else "")
