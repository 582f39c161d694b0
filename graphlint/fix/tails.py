"""GL301 and the host side of GL202: the tail of a host buffer."""

from __future__ import annotations

import ast
import re

from graphlint.finding import Finding, Fix
from graphlint.fix import Lines
from graphlint.fix.island import Island
from graphlint.fix.values import meaning_of, pad_value

_NUMPY = re.compile(r"(\.np|_np|\.numpy\(\))$")


def fix(finding: Finding, lines: Lines) -> Fix | None:
    """A fill of everything behind the prefix, right after the write."""
    source = lines(finding.path)
    island = Island(finding.path, source, finding.line)
    found = _prefix_write(island, finding)
    if found is None:
        return None
    stmt, prefix, hi = found
    block = island.block_of(stmt)
    following = block[block.index(stmt) + 1 :][:1]
    base = ast.unparse(prefix.value)
    if following and re.match(re.escape(base) + r"\[.*:\]", ast.unparse(following[0])):
        return None  # somebody fills it already, in a way the check does not take for enough
    name = base.removeprefix("self.")
    if meaning_of(finding, name) == "indptr":
        bound = ast.unparse(hi)
        value, sure = f"{base}[{bound[:-4] if bound.endswith(' + 1') else f'{bound} - 1'}]", True
    else:
        pad = pad_value(finding, (finding.buffer or name).rsplit(".", 1)[-1], source)
        value, sure = pad.text, pad.sure
    start = tail_slice(hi)
    verb = "fill" if _NUMPY.search(base) else "fill_"
    text = f"{island.indent(stmt)}{base}[{start}].{verb}({value})\n"
    return Fix("safe" if sure else "unsafe", f"Fill the tail of `{base}` with `{value}`", [island.insert_after(stmt, text)])


def tail_slice(start: ast.expr) -> str:
    """`n:`, or `self.n :` as formatters write it around more than a name."""
    return f"{ast.unparse(start)}:" if isinstance(start, (ast.Name, ast.Constant)) else f"{ast.unparse(start)} :"


def _prefix_write(island: Island, finding: Finding) -> tuple[ast.stmt, ast.Subscript, ast.expr] | None:
    """(statement, `buffer[:n]`, n) of the write on the finding's line."""
    short = (finding.buffer or "").rsplit(".", 1)[-1]
    stmts = [one for one in island.statements() if not hasattr(one, "body") and island.covers(one, finding.line)]
    for stmt in stmts:
        for node in _written(stmt):
            if isinstance(node, ast.Subscript):
                part = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
                whole_rows = not isinstance(node.slice, ast.Tuple)
                if not isinstance(part, ast.Slice) or part.lower is not None or part.step is not None or part.upper is None:
                    continue
                named = isinstance(node.value, (ast.Name, ast.Attribute)) and short in ast.unparse(node.value)
                if whole_rows and named and _plain(part.upper):
                    return stmt, node, part.upper
    return None


def _written(stmt: ast.stmt) -> list[ast.expr]:
    """Expressions that a statement writes to."""
    if isinstance(stmt, ast.Assign):
        return list(stmt.targets)
    if isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Call):
        call = stmt.value
        found = [one.value for one in call.keywords if one.arg == "out"]
        if isinstance(call.func, ast.Attribute):
            if call.func.attr.endswith("_") and not call.func.attr.startswith("_"):
                found.append(call.func.value)
            elif call.func.attr == "copyto" and call.args:
                found.append(call.args[0])
        return found
    return []


def _plain(node: ast.expr) -> bool:
    """Names, attributes, numbers and arithmetic: safe to say twice."""
    return all(
        isinstance(one, (ast.Name, ast.Attribute, ast.Constant, ast.BinOp, ast.operator, ast.expr_context)) for one in ast.walk(node)
    )
