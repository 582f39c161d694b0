"""GL501 and GL502: which CUDA-graph mode a manager gets."""

from __future__ import annotations

import ast
import re

from graphlint.finding import Finding, Fix
from graphlint.fix import Lines
from graphlint.fix.island import Island, names_in

_MODE = re.compile(r"(.*_)?mode")


def narrow(finding: Finding, lines: Lines) -> Fix | None:
    """FULL_DECODE_ONLY where decodes run in full graphs, else none, before the manager is made."""
    source = lines(finding.path)
    island = Island(finding.path, source, finding.line)
    stmt = next((one for one in island.statements() if not hasattr(one, "body") and island.covers(one, finding.line)), None)
    if stmt is None or not any("CUDAGraphMode" in line and "import" in line for line in source):
        return None
    arguments = [
        part.id for call in ast.walk(stmt) if isinstance(call, ast.Call)
        for part in (*call.args, *(one.value for one in call.keywords)) if isinstance(part, ast.Name) and _MODE.fullmatch(part.id)
    ]
    if len(set(arguments)) != 1:
        return None
    mode = arguments[0]
    if any(one.lineno > stmt.lineno and mode in names_in(one) for one in island.statements()):
        return None  # others are to have it as it is
    indent = island.indent(stmt)
    text = (
        f"{indent}if {mode}.decode_mode() == CUDAGraphMode.FULL:\n{indent}    {mode} = CUDAGraphMode.FULL_DECODE_ONLY\n"
        f"{indent}else:\n{indent}    {mode} = CUDAGraphMode.NONE\n"
    )
    return Fix("unsafe", f"Narrow `{mode}` to full decode graphs", [island.insert_before(stmt, text)])


def drop(finding: Finding, lines: Lines) -> Fix | None:
    """Deletes the assignment that hides the parameter."""
    island = Island(finding.path, lines(finding.path), finding.line)
    assignments = [one for one in island.statements() if isinstance(one, (ast.Assign, ast.AnnAssign))]
    stmt = next((one for one in assignments if island.covers(one, finding.line)), None)
    if stmt is None:
        return None
    alone = len(island.block_of(stmt)) == 1
    edit = island.replace(stmt, "pass") if alone else island.delete(stmt)
    return Fix("unsafe", f"Drop the assignment, so that the resolved mode is used: `{ast.unparse(stmt)}`", [edit])
