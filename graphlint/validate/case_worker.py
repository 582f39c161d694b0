"""Child side of a case: runs each variant of a kernel through all schedules and reports which lanes were left unwritten.

A lane is unwritten when two runs that differ in nothing but the poison leave both poisons in it. What a padded reader would read is what
the kernel writes when every padded request is live; lanes of that which the live batch leaves unwritten are the fault.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from graphlint.validate.bench import Replay
from graphlint.validate.case import Case, Schedule, Step, evaluate
from graphlint.validate.guard import Guard, install
from graphlint.validate.inputs import POISON, Buffers
from graphlint.validate.versions import describe


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """request.json: the case, its schedules, and the modules (variant -> file name in the folder)."""

    case: Case
    schedules: list[Schedule]
    modules: dict[str, str]
    device: str
    eager: bool = False


class BufferResult(msgspec.Struct, frozen=True, kw_only=True):
    """One buffer in one schedule: element numbers. `stale` is what `unwritten` held after the older batch and the one that runs now."""

    name: str
    read: int
    unwritten: list[int]
    written_live: int
    stale: list[str] = []
    negative: list[int] = []
    not_finite: list[int] = []
    #: which elements are written depends on loaded indices: unwritten ones are no padding lanes
    scattered: bool = False
    #: the kernel as it is never writes this buffer: what is read is what the corrected kernel writes
    from_corrected: bool = False


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """One variant in one schedule. `values` are the written elements of live lanes, for comparing variants bit by bit."""

    variant: str
    schedule: int
    buffers: list[BufferResult]
    strays_full: list[tuple[str, str, int]] = []
    strays: list[tuple[str, str, int]] = []
    values: dict[str, list[list[float]]] = {}


def prepare() -> None:
    """Heavy imports, before the sandbox closes."""
    import torch

    importlib.import_module("triton.language")

    torch.set_num_threads(1)
    if os.environ.get("TRITON_INTERPRET") == "1":
        importlib.import_module("triton.runtime.interpreter")
    elif torch.cuda.is_available():
        cuda: Any = torch.cuda
        cuda.init()
        torch.zeros(1, device="cuda")
    describe("cuda" if torch.cuda.is_available() and os.environ.get("TRITON_INTERPRET") != "1" else "cpu")


class Full(NamedTuple):
    """The batch with every padded request live: elements read, outputs, accesses outside of the buffers."""

    read: dict[str, Any]
    values: dict[str, Any]
    strays: list[tuple[str, str, int]]
    #: buffers whose `read` is what the corrected kernel writes
    from_corrected: set[str]


class _Runner:
    def __init__(self, request: Request, kernel: Any, guard: Guard) -> None:
        self.request, self.case, self.kernel, self.guard = request, request.case, kernel, guard
        self.buffers = Buffers(request.case, request.device)
        guard.active = request.device == "cpu"
        for name, tensor in self.buffers.tensors.items():
            guard.add(name, tensor.data_ptr(), tensor.numel() * tensor.element_size(), tensor.element_size())
        self.snapshots = {pointer.name: self.buffers.tensors[pointer.name].clone() for pointer in self.buffers.outputs()}
        self.scattered: dict[str, bool] = {}
        #: what a captured consumer does: reads whole buffers at fixed addresses
        self.reader = Replay(self._read, request.device, request.eager)

    def _read(self) -> None:
        for name, snapshot in self.snapshots.items():
            snapshot.copy_(self.buffers.tensors[name])

    def launch(self, step: Step) -> None:
        """Launches the kernel for the live requests of `step`, with its padded size where the launch asks for it."""
        case = self.case
        symbols = {**step.symbols(case.capacity, case.token_capacity), "row": case.row}
        values = {name: evaluate(text, symbols) for name, text in {**case.scalars, **case.constexprs}.items()}
        arguments = {name: self.buffers.tensors[name] if name in self.buffers.tensors else values[name] for name in case.params}
        grid = tuple(int(evaluate(axis, symbols)) for axis in case.grid)
        if all(axis > 0 for axis in grid):
            self.kernel[grid](**arguments)

    def outcome(self, step: Step, seed: int, poison: int, shuffle: bool) -> dict[str, Any]:
        """Outputs after `step` over poison, as the captured reader sees them."""
        self.buffers.fill(step, seed, poison, shuffle)
        self.launch(step)
        self.reader.replay()
        return {name: snapshot.cpu().clone() for name, snapshot in self.snapshots.items()}

    def initial(self, step: Step, seed: int, poison: int, shuffle: bool) -> dict[str, Any]:
        """Outputs before `step` over poison."""
        self.buffers.fill(step, seed, poison, shuffle)
        return {name: self.buffers.tensors[name].cpu().clone() for name in self.snapshots}

    def unwritten(self, step: Step, seed: int, shuffle: bool = False) -> tuple[dict[str, Any], dict[str, Any]]:
        """(mask of unwritten elements, outputs of the first run) of each output."""
        masks, first = {}, {}
        begin = [self.initial(step, seed, poison, shuffle) for poison in POISON]
        end = [self.outcome(step, seed, poison, shuffle) for poison in POISON]
        for name in self.snapshots:
            distinct = begin[0][name] != begin[1][name]
            masks[name] = distinct & (begin[0][name] == end[0][name]) & (begin[1][name] == end[1][name])
            first[name] = end[0][name]
        return masks, first

    def full(self, schedule: Schedule) -> Full:
        """What a padded reader reads: what the kernel writes when every padded request is live."""
        self.guard.strays.clear()
        masks, values = self.unwritten(schedule.now.full(), schedule.seed)
        return Full(read={name: ~mask for name, mask in masks.items()}, values=values, strays=list(self.guard.strays), from_corrected=set())

    def stale(self, schedule: Schedule) -> dict[str, Any]:
        """Outputs after the older batch and then the live one over what it left."""
        self.buffers.fill(schedule.before, schedule.seed, 0)
        self.launch(schedule.before)
        self.buffers.fill(schedule.now, schedule.seed, None)
        self.launch(schedule.now)
        self.reader.replay()
        return {name: snapshot.cpu().clone() for name, snapshot in self.snapshots.items()}

    def schedule(self, variant: str, number: int, schedule: Schedule, full: Full) -> RunResult:
        """The live batch over poison, held against `full`; where lanes are missing, also what the older batch left in them."""
        import torch

        self.guard.strays.clear()
        masks, values = self.unwritten(schedule.now, schedule.seed)
        strays = list(self.guard.strays)
        stale: dict[str, Any] = {}
        results, live_values = [], {}
        for name in self.case.watch:
            read, mask = full.read[name], masks[name]
            missing = torch.nonzero(read & mask).flatten().tolist()
            if missing and not stale:
                stale = self.stale(schedule)
            if missing and name not in self.scattered:
                again, _ = self.unwritten(schedule.now, schedule.seed, shuffle=True)
                self.scattered |= {other: bool((again[other] != masks[other]).any()) for other in self.case.watch}
            padding = read & ~mask & (values[name] != full.values[name])
            odd = torch.nonzero(padding & (values[name] < 0)).flatten().tolist() if values[name].dtype != torch.bool else []
            finite = (
                torch.isfinite(values[name]) | ~torch.isfinite(full.values[name])
                if values[name].is_floating_point()
                else torch.ones_like(read)
            )
            results.append(
                BufferResult(
                    name=name,
                    read=int(read.sum()),
                    unwritten=missing[:512],
                    written_live=int((read & ~mask).sum()),
                    stale=[_show(stale[name][element]) for element in missing[:8]],
                    negative=odd[:64],
                    scattered=self.scattered.get(name, False),
                from_corrected=name in full.from_corrected,
                not_finite=torch.nonzero(~finite & ~mask).flatten().tolist()[:64],
                )
            )
            written = torch.nonzero(~mask).flatten()[:4096]
            live_values[name] = [[int(element), float(values[name][element])] for element in written]
        return RunResult(variant=variant, schedule=number, buffers=results, strays_full=full.strays, strays=strays, values=live_values)


def _show(value: Any) -> str:
    item = value.item()
    return f"{item:.4g}" if isinstance(item, float) else str(item)


def _load(folder: str, file: str, kernel: str) -> Any:
    spec = importlib.util.spec_from_file_location(Path(file).stem, Path(folder, file))
    if spec is None or spec.loader is None:
        raise ImportError(file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return getattr(module, kernel)


def main(folder: str) -> None:
    """Runs every variant; after each schedule writes result.json, so that a child that dies leaves what it had."""
    request = msgspec.json.decode(Path(folder, "request.json").read_bytes(), type=Request)
    guard = Guard()
    guarded = request.device == "cpu" and install(guard)
    # written before any of the kernel runs
    result: dict[str, Any] = {"runs": [], "guarded": guarded, "at": "", **describe(request.device)}
    _write(folder, result)
    runners = {variant: _Runner(request, _load(folder, file, request.case.kernel), guard) for variant, file in request.modules.items()}
    first, *others = runners.values()
    for number, schedule in enumerate(request.schedules):
        full: Full | None = None
        for variant, runner in runners.items():
            result["at"] = f"{variant}: {schedule.text()}"
            _write(folder, result)
            if full is None:
                full = first.full(schedule)
                empty = [name for name in request.case.watch if not bool(full.read[name].any())]
                if empty and others:
                    # as it is, the kernel never writes the buffer: the corrected one says who reads it
                    repaired = others[0].full(schedule)
                    for name in empty:
                        full.read[name], full.values[name] = repaired.read[name], repaired.values[name]
                        full.from_corrected.add(name)
            result["runs"].append(msgspec.to_builtins(runner.schedule(variant, number, schedule, full)))
    result["at"] = ""
    _write(folder, result)


def _write(folder: str, result: dict[str, Any]) -> None:
    temporary = Path(folder, "result.json.part")
    temporary.write_text(json.dumps(result), encoding="utf-8")
    os.replace(temporary, Path(folder, "result.json"))
