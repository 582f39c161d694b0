"""Ranges of index variables under conditions, and the groups they form in an offset."""

from __future__ import annotations

from graphlint.facts.expr import ONE, Expr
from graphlint.kernel_models.conditions import bound
from graphlint.kernel_models.groups import Group, Lanes, Loops, arange_ends, is_arange, part_of_pid, raised_by, times_factor
from graphlint.kernel_models.linear import Monomial, Poly, add, constant, depends, difference, minimum, poly, scale


class Ranges:
    """Index variables of one access; `loops` gives the range of every loop variable of the kernel."""

    def __init__(self, loops: Loops, conds: list[Expr], data: set[Expr], split: int | None = None, run: bool = False) -> None:
        self.loops = loops
        self.conds = conds
        #: conditions from this position on cut one interval in two: their bound replaces the one before
        self.split = len(conds) if split is None else split
        #: opaque locals
        self.data = data
        #: the offset is known to be a run (see `_run_start`)
        self.run = run
        self.out = Lanes()
        self.pids: dict[Expr, tuple[Poly, Poly, bool]] = {}
        #: a term is no sum of index variables with positive multipliers
        self.broken = False

    def is_index(self, atom: Expr) -> bool:
        """Whether an atom counts lanes."""
        return atom[0] == "pid" or atom in self.loops or is_arange(atom) or part_of_pid(atom)

    def moving(self, mono: Monomial) -> bool:
        """Whether a monomial contains an index variable."""
        return any(self.is_index(atom) for atom in mono)

    # ---- ranges of single variables

    def pid_range(self, pid: Expr) -> tuple[Poly, Poly, bool]:
        """[lo, hi) of a program id under the conditions, and whether a guard raised lo. The innermost guard wins."""
        known = self.pids.get(pid)
        if known is not None:
            return known
        lo: Poly = {}
        hi: Poly = {(("nprog", pid[1]),): 1}
        raised = False
        for position, cond in enumerate(self.conds):
            found = bound(cond, {(pid,): 1}, self.moving)
            if found is None or any(depends(atom, pid) for mono in found.limit for atom in mono):
                continue
            if found.op == "<":
                hi = found.limit
            elif found.op == ">=":
                if minimum(scale(found.limit, -1)) is None:
                    lo, raised = found.limit, True
            elif found.op == "==":
                lo, hi, raised = found.limit, add(found.limit, {(): 1}), True
            elif not self._trim(found.limit, lo, hi):
                continue
            elif constant(add(found.limit, lo, -1)) == 0:
                lo, raised = add(lo, {(): 1}), True
            else:
                hi = found.limit
            self.out.folded.add(position)
        self.pids[pid] = lo, hi, raised
        return self.pids[pid]

    @staticmethod
    def _trim(limit: Poly, lo: Poly, hi: Poly) -> bool:
        """Whether `!= limit` takes the first or the last value off a range."""
        return constant(add(limit, lo, -1)) == 0 or constant(add(limit, hi, -1)) == -1

    # ---- groups

    def groups(self, offset: Poly) -> tuple[list[Group], Poly]:
        """Index variables grouped by multiplier in source order, and the rest of the offset."""
        by_factor: dict[tuple[int, Monomial], list[Expr]] = {}
        rest: Poly = {}
        for mono, coef in offset.items():
            atoms = [atom for atom in mono if self.is_index(atom)]
            if len(atoms) == 1 and coef > 0:
                factor = tuple(atom for atom in mono if atom is not atoms[0])
                by_factor.setdefault((coef, factor), []).append(atoms[0])
            elif atoms:
                self.broken = True
            else:
                rest[mono] = coef
        groups = []
        for key, atoms in by_factor.items():
            if key == (1, ()) and len(atoms) > 1:
                for pid in [atom for atom in atoms if atom[0] == "pid"]:
                    atoms.remove(pid)
                    rest[(pid,)] = 1
            if atoms:
                groups.append(self._group(key, atoms))
        return self._compose(groups), rest

    def _group(self, factor: tuple[int, Monomial], atoms: list[Expr]) -> Group:
        if len(atoms) == 1:
            return self._single(factor, atoms[0])
        var: Poly = {}
        lo: Poly = {}
        for atom in atoms:
            var = add(var, {(atom,): 1})
        blocks = [atom for atom in atoms if is_arange(atom)]
        loops = [atom for atom in atoms if atom in self.loops]
        if len(atoms) == 2 and len(blocks) == 1 and len(loops) == 1:
            start, end, step = self.loops[loops[0]]
            first, last = arange_ends(blocks[0])
            lo = add(poly(start), poly(first))
            group = Group(factor, var, atoms, lo, add(poly(end), poly(first)))
            group.rounded = (difference(last, first) is None and difference(step, last) == 0) or difference(step, last) == 0
            group.exact = False
            group.raised = bool(poly(start))
            return group
        for atom in atoms:
            lo = add(lo, self._single(factor, atom).lo)
        group = Group(factor, var, atoms, lo, None)
        group.exact = False
        return group

    def _single(self, factor: tuple[int, Monomial], atom: Expr) -> Group:
        var: Poly = {(atom,): 1}
        if atom[0] == "pid":
            lo, hi, raised = self.pid_range(atom)
            group = Group(factor, var, [atom], lo, hi)
            group.raised = raised
            return group
        if atom in self.loops:
            start, end, step = self.loops[atom]
            group = Group(factor, var, [atom], poly(start), poly(end))
            group.exact = step == ONE
            group.raised = bool(poly(start))
            return group
        if part_of_pid(atom):
            axis = atom[2][1]
            whole: Expr = ("call", ("global", "cdiv"), (("nprog", axis), atom[3]), (), 0)
            return Group(factor, var, [atom], {}, poly(whole if atom[1] == "//" else atom[3]))
        first, last = arange_ends(atom)
        return Group(factor, var, [atom], poly(first), poly(last))

    def _compose(self, groups: list[Group]) -> list[Group]:
        """Joins a block index with its block: `pid * B + arange(0, B)` counts [0, num_programs * B)."""
        joined = True
        while joined:
            joined = False
            for high in groups:
                for low in groups:
                    if low is high or not low.exact or low.lo or low.hi is None or len(low.hi) != 1 or low.factor[0] != 1:
                        continue
                    ((mono, coef),) = low.hi.items()
                    if times_factor(low.factor, (coef, mono)) != high.factor or high.hi is None or not high.exact:
                        continue
                    var = add(raised_by(high.var, coef, mono), low.var)
                    group = Group(low.factor, var, high.atoms + low.atoms, raised_by(high.lo, coef, mono), raised_by(high.hi, coef, mono))
                    group.raised = high.raised
                    groups = [group if x is low else x for x in groups if x is not high]
                    joined = True
                    break
                if joined:
                    break
        return groups
