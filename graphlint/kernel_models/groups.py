"""Index variables and their groups: the pieces that `lanes` solves for."""

from __future__ import annotations

from graphlint.facts.expr import UNKNOWN, Expr
from graphlint.kernel_models.linear import Monomial, Poly, marks, ordered

Loops = dict[Expr, tuple[Expr, Expr, Expr]]


class Group:
    """Index variables that share one multiplier, as one variable `var` in [lo, hi)."""

    __slots__ = ("atoms", "bounded", "exact", "factor", "hi", "lo", "narrowed", "raised", "rounded", "var")

    def __init__(self, factor: tuple[int, Monomial], var: Poly, atoms: list[Expr], lo: Poly, hi: Poly | None) -> None:
        self.factor = factor
        self.var = var
        self.atoms = atoms
        self.lo = lo
        self.hi = hi
        #: the natural extent is exact (no block rounding, no overlap)
        self.exact = True
        #: a block loop: the last block may pass `hi` unless a mask says otherwise
        self.rounded = False
        #: the lower end was raised by a condition, a loop or a program guard
        self.raised = False
        #: the upper end came from a mask or guard
        self.bounded = False
        #: a condition leaves out values of a loop variable (a mask on an arange only undoes its padding)
        self.narrowed = False


class Lanes:
    """Result of `solve`."""

    __slots__ = ("axis", "exact", "folded", "hi", "inner", "lo", "per_program", "raised", "raised_inner", "role", "run", "width")

    def __init__(self) -> None:
        self.lo: Expr = UNKNOWN
        self.hi: Expr = UNKNOWN
        self.exact = True
        self.axis: int | None = None
        self.role = "lane"
        self.inner: tuple[Expr, Expr] | None = None
        #: positions of the conditions that are part of the interval
        self.folded: set[int] = set()
        #: the interval starts past a guard, a mask or a loop bound
        self.raised = False
        #: the same of the inner interval
        self.raised_inner = False
        #: each program has its own part of the interval
        self.per_program = False
        #: consecutive runs that start at a loaded value, shifted by the program id
        self.run = False
        #: multiplier of the row, for offsets `row * width + inner`
        self.width: Poly | None = None


def is_arange(atom: Expr) -> bool:
    """An arange, with or without added axes."""
    return atom[0] == "arange" or (atom[0] == "index" and is_arange(atom[1]))


def part_of_pid(atom: Expr) -> bool:
    """`pid // n` or `pid % n`: one program axis that numbers two dimensions."""
    return atom[0] == "bin" and atom[1] in ("//", "%") and atom[2][0] == "pid" and atom[3][0] in ("param", "const", "global")


def pids_of(expr: Expr) -> list[Expr]:
    """Program ids in an expression."""
    return [part for part in marks(expr) if part[0] == "pid"]


def arange_ends(atom: Expr) -> tuple[Expr, Expr]:
    """Bounds of an arange."""
    while atom[0] == "index":
        atom = atom[1]
    return atom[1], atom[2]


def times_factor(factor: tuple[int, Monomial], other: tuple[int, Monomial]) -> tuple[int, Monomial]:
    """Product of two multipliers."""
    return factor[0] * other[0], ordered(factor[1] + other[1])


def raised_by(p: Poly, coef: int, mono: Monomial) -> Poly:
    """A sum times one term."""
    return {ordered(key + mono): value * coef for key, value in p.items()}


def divide(mono: Monomial, factor: Monomial) -> Monomial | None:
    """A monomial without the factors of another, None when it does not have them."""
    left = list(mono)
    for atom in factor:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left)
