"""Child side of a case: runs each variant of a kernel through all schedules and reports which lanes were left unwritten.

A lane is unwritten when two runs that differ in nothing but the poison leave both poisons in it. What a padded reader would read is what
the kernel writes when every padded request is live; lanes of that which the live batch leaves unwritten are the fault.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any

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
    lane_rule: bool = False


class BufferResult(msgspec.Struct, frozen=True, kw_only=True):
    """One buffer in one schedule: element numbers. `stale` is what `unwritten` held after the older batch and the one that runs now."""

    name: str
    read: int
    unwritten: list[int]
    written_live: int
    stale: list[str] = []
    negative: list[int] = []
    not_finite: list[int] = []


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
    import triton.language  # noqa: F401

    import torch

    torch.set_num_threads(1)
    if os.environ.get("TRITON_INTERPRET") == "1":
        import triton.runtime.interpreter  # noqa: F401
    elif torch.cuda.is_available():
        torch.cuda.init()
        torch.zeros(1, device="cuda")
    describe("cuda" if torch.cuda.is_available() and os.environ.get("TRITON_INTERPRET") != "1" else "cpu")


class _Runner:
    def __init__(self, request: Request, kernel: Any, guard: Guard) -> None:
        self.request, self.case, self.kernel, self.guard = request, request.case, kernel, guard
        self.buffers = Buffers(request.case, request.device)
        guard.active = request.device == "cpu"
        for name, tensor in self.buffers.tensors.items():
            guard.add(name, tensor.data_ptr(), tensor.numel() * tensor.element_size(), tensor.element_size())
        self.snapshots = {pointer.name: self.buffers.tensors[pointer.name].clone() for pointer in self.buffers.outputs()}
        #: what a captured consumer does: reads whole buffers at fixed addresses
        self.reader = Replay(self._read, request.device)

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

    def outcome(self, step: Step, seed: int, poison: int) -> dict[str, Any]:
        """Outputs after `step` over poison, as the captured reader sees them."""
        self.buffers.fill(step, seed, poison)
        self.launch(step)
        self.reader.replay()
        return {name: snapshot.cpu().clone() for name, snapshot in self.snapshots.items()}

    def initial(self, step: Step, seed: int, poison: int) -> dict[str, Any]:
        self.buffers.fill(step, seed, poison)
        return {name: self.buffers.tensors[name].cpu().clone() for name in self.snapshots}

    def unwritten(self, step: Step, seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """(mask of unwritten elements, outputs of the first run) of each output."""
        masks, first = {}, {}
        begin = [self.initial(step, seed, poison) for poison in POISON]
        end = [self.outcome(step, seed, poison) for poison in POISON]
        for name in self.snapshots:
            distinct = begin[0][name] != begin[1][name]
            masks[name] = distinct & (begin[0][name] == end[0][name]) & (begin[1][name] == end[1][name])
            first[name] = end[0][name]
        return masks, first

    def schedule(self, variant: str, number: int, schedule: Schedule) -> RunResult:
        """Full batch, live batch, then the older batch followed by the live one over what it left."""
        import torch

        now, full = schedule.now, schedule.now.full()
        self.guard.strays.clear()
        full_masks, full_values = self.unwritten(full, schedule.seed)
        strays_full = list(self.guard.strays)
        self.guard.strays.clear()
        masks, values = self.unwritten(now, schedule.seed)
        strays = list(self.guard.strays)
        self.buffers.fill(schedule.before, schedule.seed, 0)
        self.launch(schedule.before)
        self.buffers.fill(now, schedule.seed, None)
        self.launch(now)
        self.reader.replay()
        stale = {name: snapshot.cpu() for name, snapshot in self.snapshots.items()}
        results, live_values = [], {}
        for name in self.case.watch:
            read = ~full_masks[name]
            missing = torch.nonzero(read & masks[name]).flatten().tolist()
            written = torch.nonzero(~masks[name]).flatten()
            padding = read & ~masks[name] & (values[name] != full_values[name])
            odd = torch.nonzero(padding & (values[name] < 0)).flatten().tolist() if values[name].dtype != torch.bool else []
            finite = torch.isfinite(values[name]) | torch.isnan(full_values[name]) if values[name].is_floating_point() else torch.ones_like(read)
            results.append(BufferResult(
                name=name, read=int(read.sum()), unwritten=missing[:512], written_live=int((read & ~masks[name]).sum()),
                stale=[_show(stale[name][element]) for element in missing[:8]], negative=odd[:64],
                not_finite=torch.nonzero(~finite & ~masks[name]).flatten().tolist()[:64],
            ))
            live_values[name] = [[int(element), float(values[name][element])] for element in written[:4096]]
        return RunResult(variant=variant, schedule=number, buffers=results, strays_full=strays_full, strays=strays, values=live_values)


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
    for variant, file in request.modules.items():
        runner = _Runner(request, _load(folder, file, request.case.kernel), guard)
        for number, schedule in enumerate(request.schedules):
            result["at"] = f"{variant}: {schedule.text()}"
            _write(folder, result)
            result["runs"].append(msgspec.to_builtins(runner.schedule(variant, number, schedule)))
    result["at"] = ""
    _write(folder, result)


def _write(folder: str, result: dict[str, Any]) -> None:
    temporary = Path(folder, "result.json.part")
    temporary.write_text(json.dumps(result), encoding="utf-8")
    os.replace(temporary, Path(folder, "result.json"))
