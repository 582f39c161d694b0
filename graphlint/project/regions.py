"""Regions: which functions run under capture, which run once, which run every step."""

from __future__ import annotations

import re

from graphlint.facts.expr import Expr, children, strip
from graphlint.project.effects import Effects
from graphlint.project.index import FunctionDef, Index
from graphlint.project.types import Types

#: functions that run before serving or outside real steps: their writes do not maintain buffers from step to step
ONCE = re.compile(
    r"^(__init__|__post_init__|.*capture.*|.*warm_?up.*|.*dummy.*|.*profil.*|init_.*|_init_.*|initialize.*|_initialize.*|load_.*|"
    r"create|allocate.*|_allocate.*|make_.*buffers?|.*cuda_graph_state|setup.*|sleep|wake.*|shutdown)$"
)
_CAPTURE_FLAG = re.compile(r"(in|for|is)_(\w+_)?captur(e|ing)")
_CAPTURES = re.compile(r"^_?(capture|capture_.*|_capture.*|run_once.*)$")


#: dummy batches also run while serving: idle data-parallel ranks replay graphs with them
_DUMMY_STEP = re.compile(r"^_?(dummy_run|execute_dummy_batch|run_dummy.*|forward_idle)$")


def dummy_step(name: str) -> bool:
    """A function of this name runs a batch of dummy requests."""
    return _DUMMY_STEP.match(name) is not None


#: those that steps call as well: where a call from a step is seen, they are part of it
_SETTER = re.compile(r"^(set_.*|bind_.*|reset.*|clear.*)$")


def is_setter(name: str) -> bool:
    """A function of this name runs at start-up or in every step, depending on who calls it."""
    return _SETTER.match(name) is not None and ONCE.match(name) is None


def runs_once(name: str) -> bool:
    """A function of this name runs at start-up or at capture, not from step to step."""
    return (ONCE.match(name) is not None and _DUMMY_STEP.match(name) is None) or is_setter(name)


class Regions:
    """Capture roots of a project, found from what is passed to `capture(...)` and from `with torch.cuda.graph(...)`."""

    def __init__(self, index: Index, types: Types, effects: Effects) -> None:
        self.index = index
        self.types = types
        #: functions that are captured themselves -> where the capture is asked for
        self.captured: dict[str, list[tuple[FunctionDef, int]]] = {}
        #: functions that are called only if a graph is being captured
        self.at_capture: set[str] = set()
        #: functions with a capturing block of their own
        self.blocks: set[str] = set()
        #: dynamic classes whose capture method passes them
        self.classes: dict[str, set[str | None]] = {}
        for function in index.functions.values():
            self._scan(function)

    def _scan(self, function: FunctionDef) -> None:
        for event in function.fact.events:
            if event.kind != "call":
                continue
            func = strip(event.a[1])
            name = func[2] if func[0] == "attr" else func[1] if func[0] in ("global", "local") else ""
            if isinstance(name, str) and _CAPTURES.match(name):
                for argument in (*event.a[2], *(value for _, value in event.a[3])):
                    for captured in self._functions(argument, function):
                        self._add(captured, function, event.span.line)
            if any(_says_capturing(guard) for guard in event.guards):
                target = self.types.callee(event.a[1], function.owner)
                if target is not None and target[0] == "function":
                    self.at_capture.add(target[1])
            if capturing(event.withs):
                self.blocks.add(function.id)
                target = self.types.callee(event.a[1], function.owner)
                if target is not None and target[0] == "function":
                    self._add(target[1], function, event.span.line)

    @property
    def asking(self) -> set[str]:
        """Functions that have others captured: views they store in an object (metadata, a batch) are what the graph reads."""
        askers = {function.id for functions in self.captured.values() for function, _ in functions}
        return (askers | self.at_capture) - set(self.captured)

    def _add(self, target: str, function: FunctionDef, line: int) -> None:
        self.captured.setdefault(target, []).append((function, line))
        self.classes.setdefault(target, set()).add(function.owner)

    def _functions(self, expr: Expr, function: FunctionDef) -> list[str]:
        expr = strip(expr)
        if expr[0] in ("if", "phi", "or"):
            return [found for part in children(expr) for found in self._functions(part, function)]
        if expr[0] == "func":
            return [expr[1]] if expr[1] in self.index.functions else []
        if expr[0] == "attr":
            target = self.types.callee(expr, function.owner)
            if target is not None and target[0] == "function":
                found = [target[1]]
                base = strip(expr[1])
                if base[0] == "param" and base[2] == "self" and function.owner is not None:
                    for child in self.index.subclasses.get(function.owner, ()):
                        override = self.index.method(child, expr[2])
                        if override is not None and override not in found:
                            found.append(override)
                return found
        if expr[0] == "call":
            func = strip(expr[1])
            if (func[0] == "attr" and func[2] == "partial") or func[:2] == ("global", "partial"):
                return self._functions(expr[2][0], function) if expr[2] else []
        return []


def _says_capturing(guard: Expr) -> bool:
    """A flag that says that a graph is being captured: `in_capture`, `for_cudagraph_capture`."""
    name = guard[1] if guard[0] in ("let", "local") else guard[2] if guard[0] in ("param", "attr") else ""
    return isinstance(name, str) and _CAPTURE_FLAG.fullmatch(name) is not None


def capturing(withs: tuple[Expr, ...]) -> bool:
    """One of these context managers captures what runs under it."""
    return any("cuda.graph" in text or "CUDAGraph" in text for text in map(_callee_text, withs))


def _callee_text(manager: Expr) -> str:
    manager = strip(manager)
    func = strip(manager[1]) if manager[0] == "call" else manager
    parts: list[str] = []
    while func[0] == "attr":
        parts.append(func[2])
        func = strip(func[1])
    if func[0] in ("global", "local"):
        parts.append(str(func[1]))
    return ".".join(reversed(parts))
