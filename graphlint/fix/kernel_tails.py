"""GL202: a tail fill that starts too far behind, in a kernel or on the host."""

from __future__ import annotations

import ast

from graphlint.finding import Finding, Fix
from graphlint.fix import Lines
from graphlint.fix.island import Island
from graphlint.fix.kernel_code import KernelCode


def fix(finding: Finding, lines: Lines) -> Fix | None:
    """Starts the fill where the live write ends."""
    island = Island(finding.path, lines(finding.path), finding.line)
    if island.jit:
        return _in_kernel(island, finding)
    return _on_host(island, finding)


def _in_kernel(island: Island, finding: Finding) -> Fix | None:
    code = KernelCode(island)
    store = code.store_at(finding.line)
    if store is None:
        return None
    block = next((one for one in code.pad_blocks() if any(part.stmt is store.stmt for part in code.stores(one.test.body))), None)
    loop = next((one for one in ast.walk(island.node) if isinstance(one, ast.For) and one.body is island.block_of(store.stmt)), None)
    if block is None or loop is None or not isinstance(loop.iter, ast.Call) or len(loop.iter.args) < 2:
        return None
    live = None
    for one in code.stores():
        if one.base != store.base or one.stmt is store.stmt:
            continue
        body = island.block_of(one.stmt)
        around = next((part for part in ast.walk(island.node) if isinstance(part, ast.For) and part.body is body), None)
        if around is not None and isinstance(around.iter, ast.Call) and len(around.iter.args) >= 2:
            live = code.at_lane(around.iter.args[0], block.first)  # where a request behind the last live one would start
        elif one.lane in code.pids:
            live = block.first
    if live is None or live == ast.unparse(loop.iter.args[0]):
        return None
    return Fix("safe", f"Start the fill at `{live}`, where the live lanes end", [island.replace(loop.iter.args[0], live)])


def _on_host(island: Island, finding: Finding) -> Fix | None:
    stmt = next((one for one in island.statements() if not hasattr(one, "body") and island.covers(one, finding.line)), None)
    if stmt is None:
        return None
    fill = next(
        (
            one for one in ast.walk(stmt)
            if isinstance(one, ast.Subscript) and isinstance(one.slice, ast.Slice) and one.slice.lower is not None
        ),
        None,
    )
    if fill is None or not isinstance(fill.slice, ast.Slice) or fill.slice.lower is None:
        return None
    base = ast.unparse(fill.value)
    ends = [
        ast.unparse(node.slice.upper)
        for one in island.statements() if one.lineno < stmt.lineno and not hasattr(one, "body")
        for node in ast.walk(one)
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice) and node.slice.lower is None
        and node.slice.upper is not None and ast.unparse(node.value) == base
    ]
    if not ends or ends[-1] == ast.unparse(fill.slice.lower):
        return None
    return Fix("safe", f"Start the fill at `{ends[-1]}`, where the live lanes end", [island.replace(fill.slice.lower, ends[-1])])
