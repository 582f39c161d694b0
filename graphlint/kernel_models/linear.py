"""Linear and polynomial normal form of index expressions.

Two index expressions are the same lane when their difference normalises to zero. A polynomial is a mapping from a monomial (a sorted
tuple of atoms) to an integer coefficient; an atom is any expression that `+ - *` does not take apart.
"""

from __future__ import annotations

from collections.abc import Callable

from graphlint.facts.expr import UNKNOWN, ZERO, Expr, strip

Monomial = tuple[Expr, ...]
Poly = dict[Monomial, int]

#: Sums and products beyond this many terms stay opaque: nothing in an address needs more, and the cost stays bounded.
MAX_TERMS = 40
_LEAVES = frozenset(("const", "param", "global", "local", "func", "unknown", "pid", "nprog"))


def poly(expr: Expr) -> Poly:
    """Normal form of an integer expression; bound names (`let`) are looked through. Callers must not change the result."""
    found = _polys.get(id(expr))
    if found is None:
        found = _polys[id(expr)] = (expr, _poly(expr))
    return found[1]


def _poly(expr: Expr) -> Poly:
    expr = strip(expr)
    op = expr[0]
    if op == "const":
        value = expr[1]
        if isinstance(value, bool) or not isinstance(value, int):
            return {(expr,): 1}
        return {(): value} if value else {}
    if op == "bin" and expr[1] in ("+", "-"):
        return add(poly(expr[2]), poly(expr[3]), 1 if expr[1] == "+" else -1)
    if op == "bin" and expr[1] == "*":
        return multiply(poly(expr[2]), poly(expr[3]), expr)
    if op == "un" and expr[1] == "-":
        return scale(poly(expr[2]), -1)
    if op == "un" and expr[1] == "+":
        return poly(expr[2])
    return {(expr,): 1}


def add(a: Poly, b: Poly, factor: int = 1) -> Poly:
    """a + factor * b."""
    out = dict(a)
    for mono, coef in b.items():
        total = out.get(mono, 0) + factor * coef
        if total:
            out[mono] = total
        else:
            out.pop(mono, None)
    return out


def scale(a: Poly, factor: int) -> Poly:
    """factor * a."""
    return {mono: coef * factor for mono, coef in a.items()} if factor else {}


def multiply(a: Poly, b: Poly, whole: Expr) -> Poly:
    """a * b, or `whole` as one atom when the product has too many terms."""
    if len(a) * len(b) > MAX_TERMS:
        return {(whole,): 1}
    out: Poly = {}
    for ma, ca in a.items():
        for mb, cb in b.items():
            mono = times(ma, mb)
            total = out.get(mono, 0) + ca * cb
            if total:
                out[mono] = total
            else:
                out.pop(mono, None)
    return out


def times(a: Monomial, b: Monomial) -> Monomial:
    """Product of two monomials in canonical order."""
    if not a:
        return b
    if not b:
        return a
    return ordered(a + b)


def ordered(atoms: Monomial) -> Monomial:
    """Factors in canonical order."""
    return tuple(sorted(atoms, key=_text)) if len(atoms) > 1 else atoms


def _text(atom: Expr) -> str:
    found = _texts.get(id(atom))
    if found is None:
        found = _texts[id(atom)] = (atom, repr(atom))
    return found[1]


def _rank(term: tuple[Monomial, int]) -> tuple[bool, tuple[str, ...]]:
    return term[1] < 0, tuple(_text(atom) for atom in term[0])


def constant(p: Poly) -> int | None:
    """The value of a constant polynomial, or None."""
    if not p:
        return 0
    return p[()] if len(p) == 1 and () in p else None


def to_expr(p: Poly) -> Expr:
    """An expression in canonical order: equal polynomials give equal expressions."""
    if not p:
        return ZERO
    terms = [(mono, coef) for mono, coef in p.items() if mono]
    if len(terms) > 1:
        terms.sort(key=_rank)
    out: Expr | None = None
    for mono, coef in terms:
        body = mono[0]
        for atom in mono[1:]:
            body = ("bin", "*", body, atom)
        if abs(coef) != 1:
            body = ("bin", "*", body, ("const", abs(coef)))
        out = (("un", "-", body) if coef < 0 else body) if out is None else ("bin", "-" if coef < 0 else "+", out, body)
    rest = p.get((), 0)
    if out is None:
        return ("const", rest)
    if rest:
        out = ("bin", "-" if rest < 0 else "+", out, ("const", abs(rest)))
    return out


def canonical(expr: Expr) -> Expr:
    """`expr` with its sums in canonical order."""
    return to_expr(poly(expr))


def difference(a: Expr, b: Expr) -> int | None:
    """a - b when that is a known constant, else None."""
    return constant(add(poly(a), poly(b), -1))


def same(a: Expr, b: Expr) -> bool:
    """Whether two index expressions are provably equal."""
    if UNKNOWN in (a, b):
        return False
    return difference(plain(a), plain(b)) == 0


def plain(expr: Expr) -> Expr:
    """`expr` without bound names at any depth."""
    if expr[0] == "let":
        return plain(expr[2])
    return rebuild(expr, plain)


def rebuild(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """`expr` with `change` applied to each direct sub-expression, the same object when nothing changes."""
    op = expr[0]
    if op in _LEAVES:
        return expr
    if op in ("bin", "cmp"):
        a, b = change(expr[2]), change(expr[3])
        return expr if a is expr[2] and b is expr[3] else (op, expr[1], a, b)
    if op == "call":
        args = tuple([change(arg) for arg in expr[2]])
        kwargs = tuple([(key, change(value)) for key, value in expr[3]])
        func = change(expr[1])
        return expr if func is expr[1] and args == expr[2] and kwargs == expr[3] else ("call", func, args, kwargs, expr[4])
    if op == "dict":
        return ("dict", *((change(key), change(value)) for key, value in expr[1:]))
    out = (op, *[change(part) if isinstance(part, tuple) else part for part in expr[1:]])
    return expr if out == expr else out


def substitute(expr: Expr, old: Expr, new: Expr) -> Expr:
    """`expr` with every `old` (a marked one) replaced by `new`; the indices of loads inside stay canonical."""
    if old not in marks(expr):
        return expr
    if expr == old:
        return new
    out = rebuild(expr, lambda part: substitute(part, old, new))
    if out is expr:
        return expr
    if out[0] == "load":
        return ("load", out[1], canonical(out[2]), out[3], out[4])
    return fold(out)


def fold(expr: Expr) -> Expr:
    """Decides a comparison of constants (and of sums that cannot be negative) and the `if` over it."""
    if expr[0] == "cmp" and expr[1] in ("<", "<=", ">", ">=", "==", "!="):
        apart = gap(expr)
        value = constant(apart)
        if value is not None:
            return ("const", _compare(expr[1], value))
        low = minimum(apart)
        if low is not None:
            if (expr[1] in (">", "!=") and low > 0) or (expr[1] == ">=" and low >= 0):
                return ("const", True)
            if (expr[1] in ("<=", "==") and low > 0) or (expr[1] == "<" and low >= 0):
                return ("const", False)
    if expr[0] == "if" and expr[1] in (("const", True), ("const", False)):
        taken: Expr = expr[2] if expr[1][1] else expr[3]
        return taken
    return expr


def minimum(p: Poly) -> int | None:
    """A lower bound of a sum of program ids and program counts, else None."""
    low = 0
    for mono, coef in p.items():
        if not mono:
            low += coef
        elif coef > 0 and len(mono) == 1 and mono[0][0] in ("pid", "nprog"):
            low += coef if mono[0][0] == "nprog" else 0
        else:
            return None
    return low


def _compare(op: str, value: int) -> bool:
    return {"<": value < 0, "<=": value <= 0, ">": value > 0, ">=": value >= 0, "==": value == 0, "!=": value != 0}[op]


def gap(cond: Expr) -> Poly:
    """Left side minus right side of a comparison. Callers must not change the result."""
    found = _gaps.get(id(cond))
    if found is None:
        found = _gaps[id(cond)] = (cond, add(poly(cond[2]), poly(cond[3]), -1))
    return found[1]


def contains(expr: Expr, wanted: Callable[[Expr], bool]) -> bool:
    """Whether `wanted` holds for any marked part of the expression (see `marks`)."""
    return any(wanted(part) for part in marks(expr))


#: What `marks` and `size` know of an expression, by identity; the expression is kept so that its identity stays taken.
_known: dict[int, tuple[Expr, int, frozenset[Expr]]] = {}
_texts: dict[int, tuple[Expr, str]] = {}
_polys: dict[int, tuple[Expr, Poly]] = {}
_gaps: dict[int, tuple[Expr, Poly]] = {}
_NOTHING: frozenset[Expr] = frozenset()
_MARKED = ("pid", "local", "load", "arange", "if", "unknown")


def forget() -> None:
    """Drops what is remembered of expressions; called once a kernel."""
    _known.clear()
    _texts.clear()
    _polys.clear()
    _gaps.clear()


def marks(expr: Expr) -> frozenset[Expr]:
    """Parts of an expression, itself included, that decide what may be done with it: program ids, locals, loads, aranges, ifs, unknowns."""
    return _look(expr)[2]


def size(expr: Expr) -> int:
    """Number of parts, shared ones counted each time they occur."""
    return _look(expr)[1]


def _look(expr: Expr) -> tuple[Expr, int, frozenset[Expr]]:
    found = _known.get(id(expr))
    if found is not None:
        return found
    op = expr[0]
    parts: list[Expr]
    if op in _LEAVES:
        parts = []
    elif op in ("bin", "cmp"):
        parts = [expr[2], expr[3]]
    elif op == "call":
        parts = [expr[1], *expr[2], *(value for _, value in expr[3])]
    elif op == "dict":
        parts = [part for pair in expr[1:] for part in pair]
    else:
        parts = [part for part in expr[1:] if isinstance(part, tuple)]
    total = 1
    found_marks = frozenset((expr,)) if op in _MARKED else _NOTHING
    for part in parts:
        _, count, inner = _look(part)
        total += count
        if inner and not inner <= found_marks:
            found_marks = found_marks | inner if found_marks else inner
    result = expr, total, found_marks
    _known[id(expr)] = result
    return result


def walk(expr: Expr) -> list[Expr]:
    """The expression and all its parts, outermost first."""
    out = [expr]
    for part in out:
        op = part[0]
        if op == "call":
            out.append(part[1])
            out.extend(part[2])
            out.extend(value for _, value in part[3])
        elif op == "dict":
            out.extend(x for pair in part[1:] for x in pair)
        elif op not in _LEAVES:
            out.extend(x for x in part[1:] if isinstance(x, tuple))
    return out


def depends(expr: Expr, part: Expr) -> bool:
    """Whether the marked expression `part` occurs in `expr`."""
    return part in marks(expr)

