"""From a kernel and its launch to a runnable case: argument roles, grid, scalars, and which lanes to watch."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

import msgspec

from graphlint.validate.case import Case, Pointer, Schedule, Step, evaluate
from graphlint.validate.extract import Kernel, Unsupported
from graphlint.validate.launch import FLAG, Launch
from graphlint.validate.roles import Role, bare, count_of, is_float, pointer_role, scalar
from graphlint.validate.uses import Use, Uses

#: a padded lane runs a program of its own in these: the fault is in what that program does
LANE_RULES = frozenset({"GL203", "GL204", "GL205", "GL206", "GL207"})
#: the tail of these starts at a count that is padded already, whatever its name says
PADDED_BOUND_RULES = frozenset({"GL202"})
_FLAG_CONSTEXPR = re.compile(r"^(HAS|IS|USE|DO|ENABLE|WITH|NEED|APPLY|STORE|RETURN|COMPUTE|WRITE|CAUSAL|VARLEN)(_|$)")


class Hints(msgspec.Struct, frozen=True, kw_only=True):
    """What a caller knows of parameters beyond their names: roles, dtypes, extents ("padded_tokens"), and the padding of index buffers."""

    roles: dict[str, Role] = {}
    dtypes: dict[str, str] = {}
    extents: dict[str, str] = {}
    pad_index: int | None = None


def role_of(name: str, use: Use, hints: Hints) -> Role:
    """Role of a pointer from hints, its uses, then its name."""
    if name in hints.roles:
        return hints.roles[name]
    if use.inner:
        return "pointers"
    role = pointer_role(name.removesuffix("[]").removesuffix("_ptrs") if name.endswith("[]") else name)
    if role == "pointers":
        role = "value"
    if use.pairs and role not in ("table", "position"):
        return "offset"
    if role in ("value", "token") and use.indexes:
        return "index"
    if role in ("value", "token", "index", "count") and use.floats and not use.indexes:
        return "value"
    if role == "value" and use.bounds and not is_float(name):
        return "count"
    return role


def dtype_of(name: str, role: Role, use: Use, hints: Hints) -> str:
    """dtype of a buffer: hints, else what its role usually has."""
    if name in hints.dtypes:
        return hints.dtypes[name]
    if role in ("flag", "padding-flag"):
        return "bool"
    if role == "slot":
        return "int64"
    if role == "value" and not use.indexes and (use.floats or (not use.bounds and is_float(name))):
        return "float32"
    return "int64" if role == "index" else "int32"


def watched(buffer: str | None, uses: Uses, launch: Launch | None) -> list[str]:
    """Stored parameters that a finding means by `buffer`: the parameter, a local alias of it, or the host tensor passed for it."""
    if not buffer:
        return []
    stored = [name for name, use in uses.pointers.items() if use.stores]
    short = buffer.rsplit(".", 1)[-1].split("[")[0]
    exact = [name for name in stored if name.removesuffix("[]") == short]
    alias = [name for name in uses.aliases.get(short, []) if name in stored]
    passed = {name: launch.arguments.get(name.removesuffix("[]"), "") if launch else "" for name in stored}
    host = [name for name, text in passed.items() if text and (text == buffer or text.rsplit(".", 1)[-1].split("[")[0] == short)]
    near = [name for name in stored if bare(name.removesuffix("[]").removesuffix("_ptrs")).endswith(bare(short).rstrip("s"))]
    return exact or alias or host or (near if len(near) == 1 else [])


def build(
    kernel: Kernel, uses: Uses, launch: Launch | None, watch: list[str], rule: str, hints: Hints | None = None, flags: bool = False
) -> Case:
    """The case of one kernel. `flags` is the value of boolean constexprs that the launch does not fix.

    Raises Unsupported when an argument cannot be made.
    """
    hints = hints or Hints()
    names = frozenset(kernel.params)
    pointers, scalars, constexprs = [], {}, {}
    values = dict(launch.values) if launch else {}
    for name, use in uses.pointers.items():
        role = role_of(name, use, hints)
        pointers.append(Pointer(name=name, role=role, dtype=dtype_of(name, role, use, hints), stored=use.stores > 0, loaded=use.loads > 0))
    for name in kernel.params:
        if name in uses.pointers:
            continue
        if name in kernel.constexprs:
            constexprs[name] = _constexpr(name, kernel, values, names, flags)
        elif name in hints.extents:
            scalars[name] = hints.extents[name]
        else:
            scalars[name] = _scalar(name, kernel, values, names, rule)
    grid = list(launch.grid) if launch else _grid(uses)
    if rule in LANE_RULES:
        # one program a padded lane: a launch of live programs cannot show what a padded program does
        grid = [re.sub(r"\blive_(reqs|tokens)\b", r"padded_\1", axis) for axis in grid]
    rows = {pointer.name: _row(pointer, kernel) for pointer in pointers}
    pad_index = hints.pad_index if hints.pad_index is not None else (-1 if rule == "GL205" else 0)
    return Case(
        kernel=kernel.name,
        params=kernel.params,
        pointers=pointers,
        scalars=scalars,
        constexprs=constexprs,
        grid=grid,
        watch=watch,
        rows=rows,
        pad_index=pad_index,
    )


def _constexpr(name: str, kernel: Kernel, values: Mapping[str, str], names: frozenset[str], flags: bool) -> str:
    text = values.get(name)
    if text == FLAG:
        return str(flags)
    if text is None:
        text = kernel.autotune.get(name) or kernel.defaults.get(name)
    if text is not None and not _constant(text) and "BLOCK" in name.upper():
        text = None  # a block size worked out from tensors
    elif text is not None and "BLOCK" in name.upper() and not _literal(text):
        text = f"max(16, next_power_of_2({text}))"  # not smaller: the interpreter pays by the iteration
    if text is None and (_FLAG_CONSTEXPR.match(name.upper()) or name.lower().startswith(("is_", "has_", "use_"))):
        return str(flags)
    if text is None:
        if "BLOCK" in name.upper() or name.upper().endswith("_PADDED") or name.upper().startswith("PADDED"):
            return "64"
        text = scalar(name, names)
    return text


def _scalar(name: str, kernel: Kernel, values: Mapping[str, str], names: frozenset[str], rule: str) -> str:
    if "stride" in name.lower():
        return values.get(name, "row") if values.get(name, "row") != "0" else "row"
    text = values.get(name) or kernel.defaults.get(name)
    own = count_of(name, names)
    if own is not None and not _literal(text):
        text = own
    if rule in PADDED_BOUND_RULES and own in ("live_tokens", "live_reqs") and "max" not in name:
        return own.replace("live_", "padded_")
    if text is None or text == "None":
        text = scalar(name, names)
    return text


def _constant(text: str) -> bool:
    """The expression has a value in some batch."""
    step = Step(live=1, padded=1, lengths=[1])
    try:
        evaluate(text, {**step.symbols(16, 128), "row": 64})
    except ValueError:
        return False
    return True


def _literal(text: str | None) -> bool:
    """The launch passes a number, whatever the parameter is called."""
    return text is not None and re.fullmatch(r"-?\d+|\(-\d+\)", text) is not None


def _grid(uses: Uses) -> list[str]:
    """Grid of a kernel whose launch was not found: what each axis is called inside the kernel."""
    axes = []
    for axis in range(max(uses.axes, default=0) + 1):
        called = " ".join(uses.axes.get(axis, []))
        if re.search(r"tok", called):
            text = "live_tokens"
        elif re.search(r"req|batch|seq|row|\bi\b|pid|lane|\bb\b|idx", called) and not re.search(r"group|head|block|layer", called):
            text = "live_reqs"
        else:
            text = "1"
        axes.append(f"{text} + 1" if axis in uses.extra and text != "1" else text)
    return axes


def _row(pointer: Pointer, kernel: Kernel) -> int:
    """Elements a lane, for naming lanes: the stride's when the kernel has a scalar named after the buffer, else 1."""
    short = bare(pointer.name.removesuffix("[]")).removesuffix("_ptrs")
    stem = re.sub(r"s$", "", short)
    has_stride = any("stride" in name.lower() and stem and stem in name.lower() for name in kernel.params)
    # a leading axis of groups: [groups, lanes], lanes of one number
    return 64 if has_stride and pointer.role not in ("slot",) else 64 if pointer.name.endswith("[]") else 1


def schedules(witness: list[Step] | None, seeds: list[int], quick: bool = False) -> list[Schedule]:
    """The witness first, then variations: one request, around a power of two, a batch that is one short, longer queries, no padding."""
    found = []
    if witness:
        found.append(Schedule(before=witness[0], now=witness[-1], seed=seeds[0]))
    variations = [(12, 3, 4, 1), (12, 5, 8, 3), (9, 1, 8, 2), (16, 15, 16, 1)] + (
        [] if quick else [(8, 7, 8, 4), (4, 2, 4, 5), (16, 9, 12, 2)]
    )
    for seed in seeds:
        for number, (before, live, padded, length) in enumerate(variations):
            mixed = [1 + (lane * 7 + number + seed) % length for lane in range(padded)] if number % 2 else [length] * padded
            found.append(
                Schedule(
                    before=Step(live=before, padded=before, lengths=[min(8, length + 2)] * before),
                    now=Step(live=live, padded=padded, lengths=mixed),
                    seed=seed,
                )
            )
    return found


def check(case: Case, schedule: Schedule) -> None:
    """Raises Unsupported when a scalar, constexpr or the grid of `case` has no value in this schedule, or the grid is too large."""
    symbols = {**schedule.now.symbols(case.capacity, case.token_capacity), "row": case.row}

    def value(text: str, what: str) -> int:
        try:
            return int(evaluate(text, symbols) or 0)
        except (ValueError, TypeError) as error:
            raise Unsupported(f"needs the value of {what} = {text}") from error

    for name, text in {**case.scalars, **case.constexprs}.items():
        if not text.startswith(("'", '"')):
            value(text, f"argument {name}")
    total = math.prod(value(axis, "a launch grid") for axis in case.grid)
    if total > 4096:
        raise Unsupported(f"needs {total} programs; the harness runs up to 4096")
