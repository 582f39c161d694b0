"""What is written in place anywhere: the names that hold such storages, and the parameters that may carry one.

Everything else can not go stale, and it is most of what code passes around: summaries leave it out.
"""

from __future__ import annotations

from collections import defaultdict

from graphlint.facts.expr import UNKNOWN, Expr, strip
from graphlint.project.effect import CallSite, Launch
from graphlint.project.effects import Effects
from graphlint.project.index import Index
from graphlint.project.kernels import KernelDef
from graphlint.project.views import HALVES, KEEPS_STORAGE, SAME_ELEMENTS, Views

#: attributes of tensors that are no storage
_NUMBERS = frozenset({"shape", "dtype", "device", "ndim", "itemsize", "nbytes", "is_cuda", "layout"})
#: an expression and the dynamic class of `self` where it stands
Place = tuple[Expr, str | None]


class Written:
    """`names` of attributes whose storage is written in place, directly or through a parameter; `carriers`: parameters that some call
    binds to such a storage; `kernels`: those launched on one."""

    def __init__(self, index: Index, views: Views, effects: Effects) -> None:
        self.index = index
        self.views = views
        self.names: set[str] = set()
        self.carriers: set[Expr] = set()
        self._targets: set[Expr] = set()
        self._found: dict[tuple[int, str | None], tuple[Expr, list[Expr]]] = {}
        launches: list[tuple[Launch, str | None]] = []
        calls: list[tuple[CallSite, str | None]] = []
        for function in index.functions.values():
            if function.fact.opaque:
                continue
            for cls in (function.owner, *(c for c in index.dynamic_classes(function) if c != function.owner)):
                for item in effects.of(function, cls):
                    if isinstance(item, CallSite):
                        calls.append((item, cls))
                    elif cls != function.owner:
                        continue
                    elif isinstance(item, Launch):
                        launches.append((item, cls))
                        for pointer in item.kernel.source.stores:
                            if pointer in item.arguments:
                                self._note(item.arguments[pointer], cls)
                    elif item.kind in ("write", "fill", "update"):
                        self._note(item.target, cls)
        flows: dict[Expr, list[Place]] = defaultdict(list)
        for site, cls in calls:
            for key, argument in views.bind_arguments(site.function, site.call, views.receiver_of(site)).items():
                if argument[0] != "const" and key[2] not in ("self", "cls") and not self._is_number(key):
                    flows[key].append((argument, cls))
        self._up(flows)
        self._down(flows)
        self.kernels: list[KernelDef] = list(
            {launch.kernel.id: launch.kernel for launch, cls in launches if self.touches(launch, cls)}.values()
        )

    def matters(self, target: Expr, self_class: str | None) -> bool:
        """It may name a storage that somebody writes in place."""
        return any(self._matters(holder) for holder in self._holders(target, self_class))

    def touches(self, launch: Launch, self_class: str | None) -> bool:
        """The kernel may load from or store to such a storage."""
        pointers = launch.kernel.source.pointers
        return any(self.matters(argument, self_class) for name, argument in launch.arguments.items() if name in pointers)

    def _matters(self, holder: Expr) -> bool:
        if holder[0] == "attr":
            return holder[2] in self.names
        return holder[0] == "call" or holder in self.carriers

    def _holders(self, target: Expr, self_class: str | None) -> list[Expr]:
        """Attributes and parameters that may hold the storage; none when it is a fresh value."""
        root = origin(target)
        op = root[0]
        if op in ("attr", "param"):
            return [root]
        if op in ("if", "phi", "or"):
            return [holder for part in (root[2:] if op == "if" else root[1:]) for holder in self._holders(part, self_class)]
        if op not in ("call", "list", "tuple"):
            return []
        key = (id(target), self_class)
        known = self._found.get(key)
        if known is None:
            view = self.views.of(target, self_class)  # through getters and displays
            found = [origin(view.path)] if view is not None else [root] if self._asks_parameter(root) else []
            known = self._found[key] = (target, found)
        return known[1]

    def _asks_parameter(self, call: Expr) -> bool:
        """A method of an object that only the caller knows."""
        func = strip(call[1]) if call[0] == "call" else UNKNOWN
        if func[0] != "attr" or func[2] not in self.index.by_name:
            return False
        owner = origin(func[1])
        while owner[0] == "attr":
            owner = origin(owner[1])
        return owner[0] == "param" and owner[2] not in ("self", "cls")

    def _is_number(self, parameter: Expr) -> bool:
        """Its annotation says so."""
        for param in self.index.functions[parameter[1]].fact.params:
            if param.name == parameter[2] and param.annotation is not None:
                note = strip(param.annotation)
                return note[0] == "global" and note[1] in ("int", "float", "bool", "str")
        return False

    def _note(self, target: Expr, self_class: str | None) -> None:
        self._add(target, self_class)
        view = self.views.of(target, self_class)  # through aliases, properties, getters and pointer tables
        if view is not None:
            self._add(view.path, self_class)

    def _add(self, target: Expr, self_class: str | None) -> None:
        for holder in self._holders(target, self_class):
            if holder[0] == "attr":
                self.names.add(holder[2])
            elif holder[0] == "param":
                self._targets.add(holder)

    def _up(self, flows: dict[Expr, list[Place]]) -> None:
        """Names that arrive at a written parameter are written."""
        done: set[Expr] = set()
        while len(done) < len(self._targets):
            for key in self._targets - done:
                done.add(key)
                for argument, cls in flows.get(key, ()):
                    self._note(argument, cls)

    def _down(self, flows: dict[Expr, list[Place]]) -> None:
        """Parameters that a written storage arrives at, through however many calls."""
        onward: dict[Expr, list[Expr]] = defaultdict(list)
        work: list[Expr] = []
        for key, places in flows.items():
            for argument, cls in places:
                for holder in self._holders(argument, cls):
                    if holder[0] == "param":
                        onward[holder].append(key)
                    elif self._matters(holder):
                        work.append(key)
        while work:
            key = work.pop()
            if key not in self.carriers:
                self.carriers.add(key)
                work.extend(onward.get(key, ()))


def origin(target: Expr) -> Expr:
    """What the chain of indices, halves and calls that keep the storage starts from: an attribute, a parameter, a call, a display."""
    root = strip(target)
    while True:
        if root[0] in ("index", "iter", "item") or (root[0] == "attr" and root[2] in HALVES):
            root = strip(root[1])
            continue
        if root[0] == "call":
            func = strip(root[1])
            if func[0] == "attr" and func[2] in KEEPS_STORAGE:
                root = strip(func[1])
                continue
            if func[0] == "global" and func[1] in SAME_ELEMENTS and root[2]:
                root = strip(root[2][-1])
                continue
        return UNKNOWN if root[0] == "attr" and root[2] in _NUMBERS else root

