"""From an offset and the conditions around it to the interval of lanes that the whole grid touches.

The offset is a sum. Its index variables (program ids, loop variables, aranges) are grouped by what multiplies them; conditions bound the
groups; a block of lanes (`pid * BLOCK + arange(0, BLOCK)`) is one variable; an interval that still depends on a program id telescopes over
the grid when each program ends where the next one starts.
"""

from __future__ import annotations

from graphlint.facts.expr import ONE, UNKNOWN, Expr
from graphlint.kernel_models.conditions import Bound, bound
from graphlint.kernel_models.groups import (
    Group,
    Lanes,
    divide,
    is_arange,
    pids_of,
)
from graphlint.kernel_models.linear import (
    Monomial,
    Poly,
    add,
    canonical,
    constant,
    contains,
    difference,
    poly,
    substitute,
    to_expr,
)
from graphlint.kernel_models.ranges import Ranges


class Solver(Ranges):
    """Solves one access."""

    def apply(self, group: Group) -> None:
        """Folds the conditions that bound a whole group into its interval."""
        if len(group.atoms) == 1 and group.atoms[0][0] == "pid":
            return
        for position, cond in enumerate(self.conds):
            found = bound(cond, group.var, self.moving)
            if found is not None and self._narrow(group, found, position >= self.split):
                self.out.folded.add(position)
        if group.rounded and not group.bounded:
            self.out.exact = False

    def _narrow(self, group: Group, found: Bound, cut: bool) -> bool:
        limit = found.limit
        if found.op == "<":
            if cut or group.hi is None or (not group.bounded and group.exact and not group.rounded and self._covers_block(group)):
                group.hi, group.exact = limit, group.exact or group.hi is None
                group.narrowed = group.narrowed or any(atom in self.loops for atom in group.atoms)
            elif constant(add(limit, group.hi, -1)) is None:
                group.narrowed = True
                if group.rounded and not group.bounded:
                    self.out.exact = False
                group.hi = poly(("call", ("global", "min"), (to_expr(limit), to_expr(group.hi)), (), 0))
            elif (constant(add(limit, group.hi, -1)) or 0) < 0 or (group.rounded and not group.bounded):
                group.hi = limit
            group.bounded = True
            return True
        if found.op == ">=":
            gap = constant(add(limit, group.lo, -1))
            if gap is not None and gap <= 0:
                return True
            if gap is None and constant(group.lo) is None:
                group.lo = poly(("call", ("global", "max"), (to_expr(limit), to_expr(group.lo)), (), 0))
            else:
                group.lo = limit
            group.raised = group.raised or bool(limit)
            group.narrowed = True
            return True
        if found.op == "==":
            group.narrowed = True
            group.lo, group.hi, group.bounded, group.exact, group.rounded = limit, add(limit, {(): 1}), True, True, False
            group.raised = group.raised or bool(limit)
            return True
        if constant(add(limit, group.lo, -1)) == 0:
            group.lo = add(group.lo, {(): 1})
            return True
        return False

    def _covers_block(self, group: Group) -> bool:
        """Blocks are sized to cover the mask (grid and power-of-two padding): there the mask is the bound."""
        return any(is_arange(atom) or atom[0] == "pid" for atom in group.atoms)

    # ---- the interval

    def solve(self, offset: Poly) -> Lanes:
        """Interval of `offset` over the grid."""
        out = self.out
        groups, rest = self.groups(offset)
        for group in groups:
            self.apply(group)
        self._flat_mask(offset, groups, rest)
        start = self._run_start(offset, groups)
        if start is not None:
            groups, rest, self.broken = [group for group in groups if group.factor == (1, ())], start, False
        row = None if start is not None else self._row(offset, groups, rest)
        if row is None:
            self._element(groups, rest)
        elif isinstance(row, Group):
            self._rows(row, groups, rest)
        else:
            self._indirect_row(row, groups, rest)
        if self.broken:
            out.lo = out.hi = UNKNOWN
        self._telescope()
        if UNKNOWN in (out.lo, out.hi) or contains(out.lo, self._opaque) or contains(out.hi, self._opaque):
            out.exact = False
        return out

    def _opaque(self, part: Expr) -> bool:
        return part == UNKNOWN or part in self.data

    def _flat_mask(self, offset: Poly, groups: list[Group], rest: Poly) -> None:
        """A mask over the whole flat offset makes one group of it."""
        whole = {mono: coef for mono, coef in offset.items() if self.moving(mono)}
        if not groups or (len(groups) == 1 and groups[0].var == whole):
            return
        for position, cond in enumerate(self.conds):
            found = bound(cond, whole, self.moving)
            if found is not None and found.op == "<":
                group = Group((1, ()), whole, [atom for g in groups for atom in g.atoms], {}, found.limit)
                self.out.folded.add(position)
                self.out.exact = False
                groups[:] = [group]
                for mono in whole:
                    rest.pop(mono, None)
                return

    def _row(self, offset: Poly, groups: list[Group], rest: Poly) -> Group | Monomial | None:
        """What numbers the rows: the first term with a multiplier."""
        offset_pids = {(atom,) for mono in rest for atom in mono if atom[0] == "pid"}
        for mono, coef in offset.items():
            if mono in rest and any(self._is_data(atom) or contains(atom, self.is_index) for atom in mono) and mono not in offset_pids:
                if coef > 1 or (coef == 1 and len(mono) > 1):
                    return next((group for group in groups if group.factor[1] and self._run_of(group, mono, coef)), mono)
                continue
            for group in groups:
                if group.factor != (1, ()) and any(atom in mono for atom in group.atoms) and self.moving(mono):
                    return group
        return None

    def _run_start(self, offset: Poly, groups: list[Group]) -> Poly | None:
        """Start of the run of each program when `pid * width` only shifts runs that start at a loaded value, else None.

        It does when each program then ends where the next one starts.
        """
        unit = [group for group in groups if group.factor == (1, ())]
        if len(unit) != 1 or unit[0].hi is None:
            return None
        start = add(offset, unit[0].var, -1)
        pids = {atom for mono in start for atom in mono if atom[0] == "pid"}
        others = any(self.moving(mono) and not pids.intersection(mono) for mono in start)
        if len(pids) != 1 or others or not any(len(mono) == 1 and self._is_data(mono[0]) for mono in start):
            return None
        (pid,) = pids
        after = substitute(to_expr(add(start, unit[0].lo)), pid, ("bin", "+", pid, ONE))
        if not self.run and difference(after, to_expr(add(start, unit[0].hi))) != 0:
            return None
        self.out.run = True
        return start

    def _run_of(self, group: Group, mono: Monomial, coef: int) -> bool:
        """Whether a group counts rows from a loaded start: `(start + i) * stride`."""
        left = divide(mono, group.factor[1])
        return left is not None and coef % group.factor[0] == 0 and any(self._is_data(atom) for atom in left)

    def _is_data(self, atom: Expr) -> bool:
        return atom[0] == "load" or atom in self.data or contains(atom, lambda part: part[0] == "load")

    def _element(self, groups: list[Group], rest: Poly) -> None:
        out = self.out
        group = groups[0] if groups else None
        if group is None:
            if any(self._is_data(atom) for mono in rest for atom in mono):
                out.role = "indirect"
            out.lo = to_expr(rest)
            out.hi = to_expr(add(rest, {(): 1}))
            return
        self._interval(group, rest)

    def _interval(self, group: Group, base: Poly) -> None:
        out = self.out
        out.lo = to_expr(add(group.lo, base))
        out.hi = UNKNOWN if group.hi is None else to_expr(add(group.hi, base))
        out.raised = group.raised
        out.exact = out.exact and (group.exact or (group.rounded and group.bounded))
        self._number(group)

    def _number(self, group: Group) -> None:
        pids = [atom[2] if atom[0] == "bin" else atom for atom in group.atoms if atom[0] in ("pid", "bin")]
        if pids:
            self.out.axis = pids[0][1]
            self.out.per_program = True

    def _rows(self, row: Group, groups: list[Group], rest: Poly) -> None:
        coef, factor = row.factor
        base, inner = self._parts(rest, row.factor)
        self.out.width = {factor: coef}
        self._interval(row, base)
        self._inside([group for group in groups if group is not row], inner, rest)

    @staticmethod
    def _parts(rest: Poly, width: tuple[int, Monomial]) -> tuple[Poly, Poly]:
        """The rest of an offset as (rows, inside a row); terms of a middle dimension are left out."""
        coef, factor = width
        rows: Poly = {}
        inner: Poly = {}
        for mono, value in rest.items():
            left = divide(mono, factor)
            if left is not None and value % coef == 0 and (factor or left):
                rows = add(rows, {left: value // coef})
            elif len(mono) <= 1:
                inner[mono] = value
        return rows, inner

    def _indirect_row(self, row: Monomial, groups: list[Group], rest: Poly) -> None:
        out = self.out
        data = [atom for atom in row if self._is_data(atom)]
        data.sort(key=lambda atom: atom[0] == "load" and "stride" in str(atom[1]).lower())
        if data:
            out.role = "indirect"
            factor = tuple(atom for atom in row if atom is not data[0])
            base, inner = self._parts(rest, (rest[row], factor))
            out.lo = to_expr(base)
            out.hi = to_expr(add(base, {(): 1}))
            out.width = {factor: rest[row]}
        else:
            out.exact = False
            inner = {mono: coef for mono, coef in rest.items() if mono != row and len(mono) <= 1}
        self._inside(groups, inner, rest)

    def _inside(self, groups: list[Group], base: Poly, rest: Poly) -> None:
        """Interval of the trailing dimension: the one without a multiplier, else the last one."""
        out = self.out
        unit = [group for group in groups if group.factor == (1, ())]
        if not unit and groups and not base:
            unit = groups[-1:]
            base = self._parts(rest, unit[0].factor)[0]
        if any(group.narrowed for group in groups if group not in unit[-1:]):
            out.exact = False
        if unit:
            group = unit[-1]
            hi = UNKNOWN if group.hi is None else to_expr(add(group.hi, base))
            out.inner = (to_expr(add(group.lo, base)), hi)
            out.raised_inner = group.raised
            if hi == UNKNOWN or (group.rounded and not group.bounded) or (not group.exact and not group.rounded):
                out.exact = False
        elif base:
            out.inner = (to_expr(base), to_expr(add(base, {(): 1})))

    def _telescope(self) -> None:
        out = self.out
        own = set(pids_of(out.lo)) | ({("pid", out.axis)} if out.axis is not None else set())
        if out.inner is not None and UNKNOWN not in out.inner:
            self._telescope_inner(own)
        if out.role == "indirect" or out.lo == UNKNOWN:
            return
        pids = sorted({part for end in (out.lo, out.hi) for part in pids_of(end)})
        for pid in pids:
            if out.hi == UNKNOWN:
                out.lo = substitute(out.lo, pid, to_expr(self.pid_range(pid)[0]))
                continue
            after = substitute(out.lo, pid, ("bin", "+", pid, ONE))
            lo, hi, raised = self.pid_range(pid)
            if difference(after, out.hi) == 0:
                start, end = to_expr(lo), to_expr(hi)
                out.lo, out.hi = canonical(substitute(out.lo, pid, start)), canonical(substitute(out.lo, pid, end))
                out.raised, out.per_program = raised, True
                out.axis = pid[1] if out.axis is None else out.axis
            else:
                out.lo = canonical(substitute(out.lo, pid, to_expr(lo)))
                out.hi, out.exact = UNKNOWN, False
                out.axis = pid[1] if out.axis is None else out.axis
                out.per_program = True


    def _telescope_inner(self, own: set[Expr]) -> None:
        """The inner interval over the programs that share a row."""
        out = self.out
        lo, hi = out.inner or (UNKNOWN, UNKNOWN)
        for pid in sorted({part for end in (lo, hi) for part in pids_of(end)} - own):
            if difference(substitute(lo, pid, ("bin", "+", pid, ONE)), hi) == 0:
                first, last, raised = self.pid_range(pid)
                lo, hi = canonical(substitute(lo, pid, to_expr(first))), canonical(substitute(lo, pid, to_expr(last)))
                out.raised_inner = raised
        out.inner = lo, hi
