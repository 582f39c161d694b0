"""Turns each load, store and atomic of a kernel into segments."""

from __future__ import annotations

import re
from typing import Literal

from graphlint.facts.expr import NONE, UNKNOWN, ZERO, Expr, children
from graphlint.facts.kernels import Deref, Segment, Span
from graphlint.kernel_models import derefs
from graphlint.kernel_models.conditions import conjunction, conjuncts, negate
from graphlint.kernel_models.groups import Lanes, Loops, is_arange
from graphlint.kernel_models.lanes import Solver
from graphlint.kernel_models.linear import (
    Poly,
    add,
    canonical,
    contains,
    depends,
    marks,
    poly,
    rebuild,
    substitute,
    to_expr,
    walk,
)
from graphlint.kernel_models.rewrite import always_runs, contains_block, is_empty, pin_of, resolve, shallow, substitute_all
from graphlint.kernel_models.state import State

Kind = Literal["load", "store", "atomic"]

#: Parameters that hold addresses, by the field's habit; used only where the code itself does not tell.
POINTER_NAME = re.compile(r"(^|_)(ptrs?|pointers?)\d*$|Ptr$", re.IGNORECASE)
#: An address that depends on this many undecided conditions is not split further.
MAX_FORKS = 4


class Draft:
    """A segment before the pointer's other segments are known."""

    __slots__ = ("segment", "table", "width")

    def __init__(self, segment: Segment, width: Poly | None, table: bool = False) -> None:
        self.segment = segment
        self.width = width
        #: the address is an element of the pointer parameter, not the parameter
        self.table = table


class Recorder:
    """Collects the memory accesses of one kernel."""

    def __init__(self, qualname: str) -> None:
        self.qualname = qualname
        self.constexprs: set[str] = set()
        self.loops: Loops = {}
        #: opaque locals, with the pointer parameter they are based on, if any
        self.data: dict[Expr, str | None] = {}
        #: opaque locals, with the parameters that they may point into
        self.roots: dict[Expr, list[str]] = {}
        self.names: dict[Expr, str] = {}
        self.counts: dict[str, int] = {}
        self.drafts: list[Draft] = []
        self.derefs: list[Deref] = []
        self.pointers: dict[str, None] = {}
        self.escaped: list[tuple[Expr, str]] = []
        self.unknown: dict[str, None] = {}
        #: pointer parameters out of which an unknown function computes an address (a table of pointers)
        self.loaders: set[str] = set()

    # ---- names

    def note(self, text: str) -> None:
        """Remembers what was not understood, once."""
        self.unknown[text] = None

    def fresh(self, name: str) -> Expr:
        """A new opaque local: unlike every other value."""
        count = self.counts[name] = self.counts.get(name, 0) + 1
        atom: Expr = ("local", name if count == 1 else f"{name}'{count}")
        self.data[atom] = None
        return atom

    def opaque(self, name: str, before: Expr) -> Expr:
        """A new opaque local that stays based on the pointer that `before` is based on."""
        atom = self.fresh(name)
        base = self._base(poly(before)) if before != UNKNOWN else None
        if base is None or not self._is_pointer(base):
            self.roots[atom] = self._candidates(before)
            return atom
        return ("bin", "+", base, atom)

    def name(self, name: str, value: Expr) -> None:
        """Remembers that `value` is known as `name`; the latest name wins."""
        if value[0] not in ("const", "param", "global", "local", "unknown"):
            self.names[value] = name
            self.names[canonical(value)] = name

    def named(self, expr: Expr) -> Expr:
        """`expr` with the names that the kernel gives to its parts; the index of a load stays plain."""
        inner = expr if expr[0] == "load" else rebuild(expr, self.named)
        name = self.names.get(expr)
        return inner if name is None else ("let", name, inner)

    # ---- addresses

    def _is_pointer(self, atom: Expr) -> bool:
        if atom[0] in ("load", "local"):
            return True
        return atom[2] in self.pointers or bool(POINTER_NAME.search(atom[2]))

    def _base(self, address: Poly) -> Expr | None:
        """The pointer in a sum: a parameter named as one, else the first parameter, else the first loaded value (a table of pointers)."""
        alone = [mono[0] for mono, coef in address.items() if coef == 1 and len(mono) == 1]
        params = [atom for atom in alone if atom[0] == "param" and atom[2] not in self.constexprs]
        for atom in params:
            if self._is_pointer(atom):
                return atom
        tables = [atom for atom in alone if atom[0] == "load" and POINTER_NAME.search(str(atom[1]))]
        if tables:
            return tables[0]
        if params and not (alone and (alone[0][0] == "load" or self.data.get(alone[0]))):
            return params[0]
        if alone and (alone[0][0] == "load" or self.data.get(alone[0])):
            return alone[0]
        return None

    def _candidates(self, address: Expr) -> list[str]:
        """Parameters that an address may point into when its form is not understood: those named as pointers, else the leftmost ones."""
        out: dict[str, None] = {}
        for part in shallow(address):
            if part[0] == "param" and part[2] not in self.constexprs and self._is_pointer(part):
                out[part[2]] = None
            for root in self.roots.get(part, ()):
                out[root] = None
        if not out:
            leftmost = address
            while leftmost[0] == "bin":
                leftmost = leftmost[2]
            if leftmost[0] == "param" and leftmost[2] not in self.constexprs:
                out[leftmost[2]] = None
        return list(out)

    def _forks(self, address: Expr, conds: list[Expr], depth: int = 0) -> list[tuple[Expr, list[Expr]]]:
        """The address under each outcome of the uniform conditions inside it, with those conditions."""
        address = resolve(address, conds)
        if not any(part[0] == "if" for part in marks(address)):
            return [(address, conds)]
        test = next((part[1] for part in shallow(address) if part[0] == "if" and self._uniform(part[1])), None)
        if test is None or depth >= MAX_FORKS:
            return [(address, conds)]
        out = []
        for arm in (conjuncts(test), conjuncts(negate(test))):
            more = [*conds, *(part for part in arm if part not in conds)]
            if not arm:
                continue
            out.extend(self._forks(resolve(address, more), more, depth + 1))
        return out

    def _uniform(self, test: Expr) -> bool:
        """Whether a condition is the same for all lanes of a program."""
        return not contains(test, lambda part: part in self.loops or is_arange(part))

    # ---- events

    def load(self, address: Expr, mask: Expr, other: Expr, state: State, span: Span) -> Expr:
        """Records a load; its value."""
        values = []
        forks = self._forks(address, self._conds(state))
        for place, conds in forks:
            base = self._record(place, None, mask, conds, state, span, "load")
            if base is None:
                values.append(self.fresh("loaded"))
                continue
            pointer, offset = base
            cond = conjunction(conjuncts(mask)) if conjuncts(mask) else None
            values.append(("load", pointer, to_expr(offset), cond, None if other == NONE else other))
        value = values[-1]
        for (_, conds), early in zip(reversed(forks[:-1]), reversed(values[:-1]), strict=False):
            extra = conds[len(self._conds(state)):]
            value = ("if", conjunction(extra), early, value)
        return value

    def store(self, address: Expr, value: Expr, mask: Expr, state: State, span: Span, kind: Kind) -> None:
        """Records a store or an atomic."""
        for place, conds in self._forks(address, self._conds(state)):
            base = self._record(place, value, mask, conds, state, span, kind)
            if base is not None and base[0] not in state.stored:
                state.stored.append(base[0])

    def block(self, pointer: Expr, kind: str, args: list[Expr], state: State, span: Span) -> None:
        """Records an access through a block pointer or a tensor descriptor: which lanes is not modelled."""
        found = [part for part in walk(pointer) if part[0] == "param" and part[2] not in self.constexprs]
        if found:
            self._inexact(found[0][2], "store" if kind == "store" else "load", args[-1] if args else UNKNOWN, self._conds(state), span)
            if kind == "store" and found[0][2] not in state.stored:
                state.stored.append(found[0][2])

    def escape(self, values: list[Expr], helper: str) -> None:
        """Remembers values handed to a function that is not known."""
        self.escaped.extend((value, helper) for value in values)

    def computed(self, values: list[Expr], helper: str) -> Expr:
        """Result of an unknown function: if it is used as an address, it points where the one pointer among its arguments leads."""
        atom = self.fresh(helper or "value")
        tables = [base for base in (self._base(poly(value)) for value in values) if base is not None and self._is_pointer(base)]
        if len(tables) == 1 and tables[0][0] == "param":
            self.data[atom] = tables[0][2]
        return atom

    @staticmethod
    def _conds(state: State) -> list[Expr]:
        return list(state.conds)

    def _inexact(self, pointer: str, kind: Kind, value: Expr, conds: list[Expr], span: Span) -> None:
        self.pointers.setdefault(pointer)
        when = tuple(self.named(cond) for cond in conds)
        stored = None if kind == "load" else self.named(value)
        self.drafts.append(Draft(Segment(pointer, kind, UNKNOWN, UNKNOWN, "lane", None, stored, when, False, None, span), None))

    def _record(
        self, address: Expr, value: Expr | None, mask: Expr, conds: list[Expr], state: State, span: Span, kind: Kind,
    ) -> tuple[str, Poly] | None:
        if address[0] == "call" and address[1] == ("attr", ("global", "tl"), "block_ptr"):
            self.block(address, kind, [value] if value is not None else [], state, span)
            return None
        sum_ = poly(address)
        base = self._base(sum_)
        if base is None:
            if contains_block(address):
                self.block(address, kind, [value] if value is not None else [], state, span)
                return None
            candidates = self._candidates(address)
            for pointer in candidates:
                self._inexact(pointer, kind, UNKNOWN if value is None else value, conds, span)
                if kind != "load" and pointer not in state.stored:
                    state.stored.append(pointer)
            if not candidates:
                self.note(f"line {span.line}: address of a {kind}")
            return None
        pointer = base[2] if base[0] == "param" else base[1]
        if base[0] == "local":
            pointer = self.data[base] or "?"
            self.loaders.add(pointer)
        self.pointers.setdefault(pointer)
        offset = add(sum_, {(base,): 1}, -1)
        holds = [*conds, *(part for part in conjuncts(resolve(mask, conds)) if part not in conds)]
        for atom in state.loops:
            if not any(depends(factor, atom) for mono in offset for factor in mono):
                lo, hi, _ = self.loops[atom]
                if not (hi[0] == "const" and lo[0] == "const"):
                    holds.append(("cmp", "<", lo, hi))
        self.derefs.extend(derefs.find(pointer, offset, holds, [self.loops[atom] for atom in state.loops], span, self.named))
        exact = not state.blurred
        if value is None:
            self._emit(pointer, kind, offset, None, holds, exact, False, span, None, base[0] != "param")
        else:
            for part, more, negative in self._split(resolve(value, holds), holds, offset, len(holds)):
                self._emit(pointer, kind, offset, part, more, exact, negative, span, len(holds), base[0] != "param")
        return pointer, offset

    # ---- segments

    def _solve(
        self, offset: Poly, conds: list[Expr], split: int | None = None, run: bool = False,
    ) -> tuple[Lanes, list[Expr], dict[Expr, Expr]]:
        """Lanes, the conditions left over, and the pinned program ids."""
        pins: dict[Expr, Expr] = {}
        kept: list[Expr] = []
        cut = None
        for position, cond in enumerate(conds):
            if position == split:
                cut = len(kept)
            pin = pin_of(cond)
            if pin is not None and pin[0] not in pins:
                pins[pin[0]] = pin[1]
                if not always_runs(pin[0], pin[1]):
                    kept.append(cond)
            else:
                kept.append(cond)
        solved = [cond if pin_of(cond) else substitute_all(cond, pins) for cond in kept]
        place = poly(substitute_all(to_expr(offset), pins)) if pins else offset
        loops = {atom: tuple(substitute_all(end, pins) for end in ends) for atom, ends in self.loops.items()} if pins else self.loops
        solver = Solver(loops, solved, set(self.data) - set(self.loops), cut, run)  # type: ignore[arg-type]
        lanes = solver.solve(place)
        left = [
            kept[i] for i in range(len(kept))
            if i not in lanes.folded and solved[i] != ("const", True) and (solved[i] is kept[i] or self._dynamic(solved[i]))
        ]
        return lanes, left, pins

    def _split(self, value: Expr, conds: list[Expr], offset: Poly, at: int, depth: int = 0) -> list[tuple[Expr, list[Expr], bool]]:
        """The value in parts of the interval: (value, conditions, whether this part is the one beyond a bound)."""
        if depth < 2:
            if value[0] == "if":
                parts = self._cut(conjuncts(value[1]), conjuncts(negate(value[1])), conds, offset, at)
                if parts is not None:
                    yes, no = parts
                    return [
                        *self._split(resolve(value[2], yes), yes, offset, at, depth + 1),
                        *((part, more, True) for part, more, _ in self._split(resolve(value[3], no), no, offset, at, depth + 1)),
                    ]
            masked = [part for part in shallow(value) if part[0] == "load" and part[3] is not None and part[4] is not None]
            for load in masked[:1]:
                known = set(conds)
                left = [cond for cond in conjuncts(load[3]) if cond not in known]
                parts = self._cut(left, conjuncts(negate(left[0])) if len(left) == 1 else [], conds, offset, at) if left else None
                if parts is not None:
                    beyond = substitute(value, load, load[4])
                    return [(value, parts[0], False), (beyond, parts[1], True)]
        return [(value, conds, False)]

    def _cut(self, yes: list[Expr], no: list[Expr], conds: list[Expr], offset: Poly, at: int) -> tuple[list[Expr], list[Expr]] | None:
        """Conditions of the two parts when both tests bound the interval, else None."""
        if not yes or not no or any(self._uniform(cond) and not contains(cond, lambda part: part[0] == "pid") for cond in [*yes, *no]):
            return None
        before = self._solve(offset, conds, at)
        whole = set(before[1])
        arms = []
        for arm in (yes, no):
            more = [*conds, *(cond for cond in arm if cond not in conds)]
            lanes, left = self._solve(offset, more, at, before[0].run)[:2]
            if any(cond in arm and cond not in whole for cond in left) or (before[0].exact and not lanes.exact):
                return None
            arms.append(more)
        return arms[0], arms[1]

    def _emit(
        self, pointer: str, kind: Kind, offset: Poly, value: Expr | None, conds: list[Expr], exact: bool, beyond: bool, span: Span,
        split: int | None = None, table: bool = False,
    ) -> None:
        lanes, left, pins = self._solve(offset, conds, split)
        if is_empty(lanes):
            return
        role = lanes.role
        stored = None
        if value is not None:
            name = self.names.get(value)
            value = substitute_all(value, pins)
            stored = self.named(value)
            if name is not None and stored[0] != "let":
                stored = ("let", name, stored)
            if role == "lane" and kind == "store" and not self._own_data(value):
                guarded = any(self._dynamic(cond) for cond in left)
                past = (lanes.raised and lanes.lo != ZERO) or (lanes.raised_inner and lanes.inner is not None and lanes.inner[0] != ZERO)
                single = bool(pins) and not lanes.per_program and lanes.lo != ZERO
                if beyond or guarded or past or single:
                    role = "fill"
        if contains(conjunction(left), lambda part: part == UNKNOWN) or any(self._cuts_lanes(cond) for cond in left):
            exact = False
        inner = None if lanes.inner is None else (self.named(lanes.inner[0]), self.named(lanes.inner[1]))
        segment = Segment(
            pointer, kind, self.named(lanes.lo), self.named(lanes.hi), role, lanes.axis, stored,  # type: ignore[arg-type]
            tuple(self.named(cond) for cond in left), exact and lanes.exact, inner, span,
        )
        self.drafts.append(Draft(segment, lanes.width, table))

    def _dynamic(self, cond: Expr) -> bool:
        """Whether a condition looks at data (a loaded value) or at a program id, not at launch constants alone."""
        return contains(cond, lambda part: part[0] in ("load", "pid") or part in self.data)

    def _cuts_lanes(self, cond: Expr) -> bool:
        """Whether a condition that no bound expresses still looks at the lane itself, and not at what a lane's load returned."""
        if cond[0] == "load":
            return False
        if is_arange(cond) or cond in self.loops:
            return True
        return any(self._cuts_lanes(part) for part in children(cond))

    def _own_data(self, value: Expr) -> bool:
        """Whether a value depends on the lane or on what the lane's program loaded."""
        if value[0] == "call" and value[1] == ("attr", ("global", "tl"), "sum"):
            return contains(value, lambda part: part[0] == "pid" or part in self.data)
        return value == UNKNOWN or contains(value, lambda part: part[0] == "pid" or part in self.data or is_arange(part))

