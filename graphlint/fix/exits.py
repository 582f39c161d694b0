"""GL203: the stores that an early return leaves out."""

from __future__ import annotations

import ast
import copy

from graphlint.finding import Finding, Fix
from graphlint.fix import Lines
from graphlint.fix.island import Island, names_in
from graphlint.fix.kernel_code import KernelCode
from graphlint.fix.values import meaning_of, pad_value


def fix(finding: Finding, lines: Lines) -> Fix | None:
    """The skipped store with the pad value before the return, in the loop it stands in, where all it needs is known there."""
    source = lines(finding.path)
    island = Island(finding.path, source, finding.line)
    code = KernelCode(island)
    leave = next((one for one in island.statements() if isinstance(one, ast.Return) and island.covers(one, finding.line)), None)
    if leave is None:  # the finding may name the branch
        branch = next((one for one in island.statements() if isinstance(one, ast.If) and island.line_of(one) == finding.line), None)
        leave = branch.body[-1] if branch and isinstance(branch.body[-1], ast.Return) else None
    skipped = code.store_at(finding.trace[-1].line) if finding.trace else None
    if leave is None or skipped is None:
        return None
    loop = next((one for one in ast.walk(island.node) if isinstance(one, ast.For) and one.body is island.block_of(skipped.stmt)), None)
    pad = pad_value(finding, skipped.base, source, code.resolve(skipped.value), code.params)
    # a row of indices ends where its length says: 0 would be a valid one
    value = "-1" if pad.text == "0" and meaning_of(finding, skipped.base) not in ("length", "mask") else pad.text
    call = copy.deepcopy(skipped.stmt)
    assert isinstance(call.value, ast.Call)
    call.value.args[1] = ast.parse(value, mode="eval").body
    parts: list[ast.stmt] = [call]
    wanted = names_in(call)
    if loop is not None:
        helpers = [
            one for one in loop.body
            if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name) and one.lineno < skipped.stmt.lineno
        ]
        for one in reversed(helpers):
            if isinstance(one.targets[0], ast.Name) and one.targets[0].id in wanted:
                wanted = (wanted - {one.targets[0].id}) | names_in(one.value)
                parts.insert(0, one)
        made = copy.copy(loop)
        made.body = parts
        wanted = (wanted - names_in(loop.target)) | names_in(loop.iter)
        parts = [made]
    if not code.known_before(wanted, leave.lineno):
        return None
    indent = island.indent(leave)
    text = "".join(f"{indent}{line}\n" for part in parts for line in ast.unparse(part).split("\n"))
    return Fix("safe", f"Store `{value}` to `{skipped.base}` before the return", [island.insert_before(leave, text)])
