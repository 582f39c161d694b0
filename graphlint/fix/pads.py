"""GL201: the missing pad stores, in the program that pads already, in the last or the extra program, or on the host after the launch."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from graphlint.finding import Edit, Finding, Fix
from graphlint.fix import Lines
from graphlint.fix.island import Island
from graphlint.fix.kernel_code import KernelCode, PadBlock, Store
from graphlint.fix.tails import tail_slice
from graphlint.fix.values import Pad, meaning_of, pad_value

_MAX_REQS = re.compile(r"(max|padded)_?(num_)?(reqs?|requests|bs|batch(_size)?|seqs)|(num_)?(reqs|bs|batch_size)_padded", re.IGNORECASE)
_MAX_TOKENS = re.compile(r"(max|padded)_?(num_)?(batched_)?tokens?|(num_)?tokens_padded", re.IGNORECASE)


def fix(finding: Finding, lines: Lines) -> Fix | None:
    """The first of the ways to pad that fits the kernel."""
    source = lines(finding.path)
    code = KernelCode(Island(finding.path, source, finding.line))
    store = code.store_at(finding.line)
    if store is None:
        return None
    for attempt in (_wider_mask, _hollow, _beside_sibling, _own_loop):
        edit = attempt(code, store, finding, source)
        if edit is not None:
            edits, pad = edit
            return Fix("safe" if pad.sure else "unsafe", f"Store `{pad.text}` to the padded lanes of `{store.base}`", edits)
    return _on_host(finding, code, store, lines)


Result = tuple[list[Edit], Pad] | None


def _pad(code: KernelCode, store: Store, finding: Finding, source: Sequence[str], block: PadBlock | None, first: str) -> Pad | None:
    """The value; offsets repeat the last one, which is the value that the first padded lane would have as a start."""
    if meaning_of(finding, store.base) == "indptr":
        text = code.at_lane(store.value, first)
        named = None
        if block is not None and block.kind == "last" and text is not None:
            named = next((name for name, value in code.bound.items() if _is_end_of(code, value, store.value)), None)
            if named is not None and code.known_before({named}, block.test.lineno):
                text = named
        return Pad(text, True) if text is not None else None
    resolved = code.resolve(store.value)
    return pad_value(finding, store.base, source, resolved, code.params)


def _is_end_of(code: KernelCode, end: ast.expr, start: ast.expr) -> bool:
    """`load(q + i + 1)` next to `load(q + i)`."""
    begin = ast.unparse(code.resolve(start))
    return begin.endswith(")") and ast.unparse(end) == begin[:-1] + " + 1)"


def _wider_mask(code: KernelCode, store: Store, finding: Finding, source: Sequence[str]) -> Result:
    """The store's own mask stops at the live count, though a padded value is loaded and sibling stores of the same lanes go on."""
    if store.mask is None:
        return None
    own = ast.unparse(code.resolve(store.mask))
    value = pad_of_load(code, store)
    block = code.island.block_of(store.stmt)
    for other in code.stores(block):
        if other.stmt is store.stmt or other.lane != store.lane or other.mask is None or value is None:
            continue
        theirs = ast.unparse(code.resolve(other.mask))
        lane = re.escape(store.lane)
        mine, wide = re.fullmatch(rf"{lane} < (\w+)", own), re.fullmatch(rf"{lane} < (\w+)", theirs)
        if mine and wide and mine[1] != wide[1] and (code.bound_at.get(ast.unparse(other.mask), 0) < store.stmt.lineno):
            return [code.island.replace(store.mask, ast.unparse(other.mask))], Pad(value, True)
    return None


def pad_of_load(code: KernelCode, store: Store) -> str | None:
    """`other=` of the masked load whose result is stored."""
    value: ast.expr = store.value
    if isinstance(value, ast.Name):
        found = [
            stmt.value for stmt in code.island.statements()
            if isinstance(stmt, ast.Assign) and stmt.lineno < store.stmt.lineno and ast.unparse(stmt.targets[0]) == ast.unparse(value)
        ]
        value = found[-1] if found else value
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "to":
        value = value.func.value
    if isinstance(value, ast.Call):
        return next((ast.unparse(one.value) for one in value.keywords if one.arg == "other"), None)
    return None


def _hollow(code: KernelCode, store: Store, finding: Finding, source: Sequence[str]) -> Result:
    """A branch or loop for the padding is there and does nothing."""
    for block in code.pad_blocks():
        loops = [one for one in ast.walk(block.test) if isinstance(one, ast.For) and not list(code.stores(one.body))]
        idle = [(one.body, one) for one in loops if isinstance(one.body[-1], ast.Pass)]
        if len(idle) == 1:
            loop = idle[0][1]
            lanes = _lanes_of(loop)
            pad = _pad(code, store, finding, source, block, block.first)
            if lanes is None or pad is None or not isinstance(loop.iter, ast.Call) or len(loop.iter.args) < 2:
                continue
            named = any(ast.unparse(one).startswith("mask = ") for one in loop.body)
            mask = "mask" if named else f"{lanes} < {ast.unparse(loop.iter.args[1])}"
            if not code.known_before({store.base}, block.test.lineno):
                continue
            text = f"tl.store({store.base} + {lanes}, {pad.text}, mask={mask})"
            return [code.island.replace(loop.body[-1], text)], pad
        if block.kind == "beyond" and store.lane in code.pids and isinstance(block.test.body[0], ast.Pass):
            pad = _pad(code, store, finding, source, block, block.first)
            if pad is not None:
                return [code.island.replace(block.test.body[0], f"tl.store({store.base} + {store.lane}, {pad.text})")], pad
    return None


def _lanes_of(loop: ast.For) -> str | None:
    """The name of `i + tl.arange(0, BLOCK)`."""
    for stmt in loop.body:
        if isinstance(stmt, ast.Assign) and isinstance(stmt.targets[0], ast.Name) and "arange" in ast.unparse(stmt.value):
            return stmt.targets[0].id
    return None


def _beside_sibling(code: KernelCode, store: Store, finding: Finding, source: Sequence[str]) -> Result:
    """A buffer that is written for the same lanes is padded in a loop: pad this one beside it."""
    siblings = {one.base for one in code.stores() if one.lane == store.lane and one.base != store.base}
    indptr = meaning_of(finding, store.base) == "indptr"
    for block in code.pad_blocks():
        for other in code.stores(block.test.body):
            if other.base not in siblings:
                continue
            around = code.island.block_of(other.stmt)
            in_loop = any(isinstance(one, ast.For) and one.body is around for one in ast.walk(block.test))
            to_one_more = in_loop and "+ 1" in _loop_stop(block, around)
            if to_one_more != indptr or (block.kind != "beyond" and not in_loop):
                continue
            pad = _pad(code, store, finding, source, block, block.first)
            if pad is None or not code.known_before({store.base}, block.test.lineno):
                continue
            mask = f", mask={ast.unparse(other.mask)}" if other.mask is not None else ""
            indent = code.island.indent(other.stmt)
            text = f"{indent}tl.store({store.base} + {other.lane}, {pad.text}{mask})\n"
            return [code.island.insert_after(other.stmt, text)], pad
    return None


def _loop_stop(block: PadBlock, around: list[ast.stmt]) -> str:
    for one in ast.walk(block.test):
        if isinstance(one, ast.For) and one.body is around and isinstance(one.iter, ast.Call) and len(one.iter.args) > 1:
            return ast.unparse(one.iter.args[1])
    return ""


def _own_loop(code: KernelCode, store: Store, finding: Finding, source: Sequence[str]) -> Result:
    """A pad loop of its own, where the kernel knows how many lanes there are."""
    if store.lane not in code.pids or store.mask is not None:
        return None
    top = next((one for one in code.params if _MAX_REQS.fullmatch(one)), None)
    step = next((one for one in code.params if "BLOCK" in one.upper()), None)
    if top is None or step is None:
        return None
    stop = f"{top} + 1" if meaning_of(finding, store.base) == "indptr" else top
    axis = code.pids[store.lane]
    block = next((one for one in code.pad_blocks() if one.kind != "beyond" and ast.unparse(one.test.test).startswith(store.lane)), None)
    first = block.first if block else f"tl.num_programs({axis})"
    pad = _pad(code, store, finding, source, block, first)
    if pad is None or not code.known_before({store.base}, (block.test if block else store.stmt).lineno):
        return None
    if block is not None:
        last = block.test.body[-1]
        indent = code.island.indent(last)
        place = code.island.insert_before if isinstance(last, ast.Return) else code.island.insert_after
        return [place(last, _loop(indent, store.base, pad.text, first, stop, step))], pad
    if store.stmt not in code.island.node.body or any(
        isinstance(one, ast.Return) and one.lineno < store.stmt.lineno for one in code.island.statements()
    ):
        return None
    if any(one.kind == "beyond" for one in code.pad_blocks()):
        return None
    indent = code.island.indent(store.stmt)
    inner = indent + "    "
    text = f"{indent}if {store.lane} == tl.num_programs({axis}) - 1:\n" + _loop(inner, store.base, pad.text, first, stop, step)
    return [code.island.insert_after(store.stmt, text)], pad


def _loop(indent: str, base: str, value: str, first: str, stop: str, step: str) -> str:
    return (
        f"{indent}for pad_start in range({first}, {stop}, {step}):\n"
        f"{indent}    pad_lanes = pad_start + tl.arange(0, {step})\n"
        f"{indent}    tl.store({base} + pad_lanes, {value}, mask=pad_lanes < {stop})\n"
    )


def _on_host(finding: Finding, code: KernelCode, store: Store, lines: Lines) -> Fix | None:
    """The tail filled after the launch, for a grid of live requests."""
    launch = next((point for point in finding.trace if point.label.startswith("launches ")), None)
    if launch is None or store.lane not in code.pids or store.base not in code.params or store.mask is not None or code.pad_blocks():
        return None
    if meaning_of(finding, store.base) == "indptr":
        return None
    source = lines(launch.path)
    island = Island(launch.path, source, launch.line)
    calls = [one for one in island.statements() if isinstance(one, ast.Expr) and isinstance(one.value, ast.Call)]
    stmt = next((one for one in calls if island.covers(one, launch.line)), None)
    if stmt is None or not isinstance(stmt.value, ast.Call) or not isinstance(stmt.value.func, ast.Subscript):
        return None
    call = stmt.value
    grid = stmt.value.func.slice
    axes = list(grid.elts) if isinstance(grid, ast.Tuple) else [grid]
    axis, position = int(code.pids[store.lane]), code.params.index(store.base)
    named = next((one.value for one in call.keywords if one.arg == store.base), None)
    target = named or (call.args[position] if position < len(call.args) else None)
    if isinstance(target, ast.Subscript):
        target = target.value
    live = axes[axis] if axis < len(axes) else None
    if not isinstance(target, (ast.Name, ast.Attribute)) or not isinstance(live, (ast.Name, ast.Attribute)):
        return None
    pad = pad_value(finding, finding.buffer or store.base, source, code.resolve(store.value))
    text = f"{island.indent(stmt)}{ast.unparse(target)}[{tail_slice(live)}].fill_({pad.text})\n"
    title = f"Fill the tail of `{ast.unparse(target)}` after the launch"
    return Fix("safe" if pad.sure else "unsafe", title, [island.insert_after(stmt, text)])
