"""The expression language of facts: plain nested tuples, hashable and serialisable.

A fact never holds a syntax tree. Every value a function computes is reduced to one of the shapes below, with local names already
replaced by what they were bound to (`let` keeps the name, because the name is evidence of unit and state).

========================================  =================================================================
shape                                     meaning
========================================  =================================================================
("const", value)                          None, bool, int, float or str literal
("param", function, name)                 parameter `name` of the function `module:qualname` (closures keep the owner)
("global", name, module)                  a name that `module` defines or imports (dotted only by `attr`)
("local", name)                           a local with no better description (loop state, exception, ...)
("let", name, expr)                       `name` was bound to `expr`; equal to `expr`
("attr", base, name)                      base.name
("index", base, item, ...)                base[item, ...]; an item may be a slice
("slice", lo, hi, step)                   lo:hi:step, absent parts are NONE
("bin", op, a, b)                         a op b, op in + - * / // % ** & | ^ << >> @
("un", op, a)                             op in - + ~ not
("cmp", op, a, b)                         op in == != < <= > >= is isnot in notin
("and", a, b, ...) / ("or", a, b, ...)    boolean operators
("if", cond, a, b)                        a if cond else b (also a merge of two branches with a known test)
("phi", a, b, ...)                        one of these (a merge whose test is lost)
("call", func, args, kwargs, line)        args: tuple of expr, kwargs: tuple of (name, expr)
("tuple", a, ...) / ("list", a, ...)      displays
("dict", (key, value), ...)               display
("item", expr, i)                         i-th element of an unpacked value (i is int)
("iter", expr)                            any element of the iterable
("star", expr)                            *expr in a call or display
("func", function)                        a function or lambda (`module:qualname`) defined inside this one
("unknown",)                              not understood; never means safe or unsafe
========================================  =================================================================

Kernel models add ("pid", axis), ("nprog", axis), ("arange", lo, hi), ("load", pointer, index, mask, other).
"""

from __future__ import annotations

from typing import Any

Expr = tuple[Any, ...]

UNKNOWN: Expr = ("unknown",)
NONE: Expr = ("const", None)
ZERO: Expr = ("const", 0)
ONE: Expr = ("const", 1)


def const(value: object) -> Expr:
    """A literal."""
    return ("const", value)


def strip(expr: Expr) -> Expr:
    """`expr` without the names it was bound to on the way (only at the top)."""
    while expr[0] == "let":
        expr = expr[2]
    return expr


def children(expr: Expr) -> list[Expr]:
    """Direct sub-expressions, in source order."""
    op = expr[0]
    if op in ("const", "param", "global", "local", "func", "unknown", "pid", "nprog"):
        return []
    if op in ("attr", "item"):
        return [expr[1]]
    if op == "let":
        return [expr[2]]
    if op in ("bin", "cmp"):
        return [expr[2], expr[3]]
    if op == "un":
        return [expr[2]]
    if op == "call":
        return [expr[1], *expr[2], *(value for _, value in expr[3])]
    if op == "dict":
        return [part for pair in expr[1:] for part in pair]
    return [part for part in expr[1:] if isinstance(part, tuple)]


def dotted(expr: Expr) -> str | None:
    """`a.b.c` of a chain of attributes over a name, or None."""
    parts: list[str] = []
    expr = strip(expr)
    while expr[0] == "attr":
        parts.append(expr[2])
        expr = strip(expr[1])
    if expr[0] in ("global", "local"):
        parts.append(expr[1])
    elif expr[0] == "param":
        parts.append(expr[2])
    else:
        return None
    return ".".join(reversed(parts))


def show(expr: Expr, names: bool = True) -> str:
    """Python-like text of an expression, for people. With `names`, a bound local shows as its name."""
    op = expr[0]
    if op == "const":
        return repr(expr[1])
    if op in ("global", "local"):
        return str(expr[1])
    if op == "param":
        return str(expr[2])
    if op == "func":
        return str(expr[1]).rsplit(".", 1)[-1]
    if op == "let":
        return str(expr[1]) if names else show(expr[2], names)
    if op == "attr":
        return f"{show(expr[1], names)}.{expr[2]}"
    if op == "index":
        return f"{show(expr[1], names)}[{', '.join(show(item, names) for item in expr[2:])}]"
    if op == "slice":
        lo, hi, step = ("" if part == NONE else show(part, names) for part in expr[1:4])
        return f"{lo}:{hi}" + (f":{step}" if step else "")
    if op == "bin":
        return f"({show(expr[2], names)} {expr[1]} {show(expr[3], names)})"
    if op == "un":
        return f"{expr[1]}{' ' if expr[1] == 'not' else ''}{show(expr[2], names)}"
    if op == "cmp":
        text = {"isnot": "is not", "notin": "not in"}.get(expr[1], expr[1])
        return f"{show(expr[2], names)} {text} {show(expr[3], names)}"
    if op in ("and", "or"):
        return "(" + f" {op} ".join(show(part, names) for part in expr[1:]) + ")"
    if op == "if":
        return f"({show(expr[2], names)} if {show(expr[1], names)} else {show(expr[3], names)})"
    if op == "phi":
        return "one of (" + ", ".join(show(part, names) for part in expr[1:]) + ")"
    if op == "call":
        args = [show(arg, names) for arg in expr[2]] + [f"{key}={show(value, names)}" for key, value in expr[3]]
        return f"{show(expr[1], names)}({', '.join(args)})"
    if op in ("tuple", "list"):
        inner = ", ".join(show(part, names) for part in expr[1:])
        return f"[{inner}]" if op == "list" else f"({inner}{',' if len(expr) == 2 else ''})"
    if op == "dict":
        return "{" + ", ".join(f"{show(key, names)}: {show(value, names)}" for key, value in expr[1:]) + "}"
    if op == "item":
        return f"{show(expr[1], names)}[{expr[2]}]"
    if op == "iter":
        return f"any of {show(expr[1], names)}"
    if op == "star":
        return f"*{show(expr[1], names)}"
    if op == "pid":
        return f"program_id({expr[1]})"
    if op == "nprog":
        return f"num_programs({expr[1]})"
    if op == "arange":
        return f"arange({show(expr[1], names)}, {show(expr[2], names)})"
    if op == "load":
        return f"load({expr[1]} + {show(expr[2], names)})"
    return "?"
