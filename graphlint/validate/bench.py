"""What a scenario in kernels/ is handed: a device, a seed, capture and replay, and a place to report to."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from graphlint.validate.verdict import Observation


class Replay:
    """A function captured once and replayed with whatever its persistent buffers hold by then.

    On a CUDA device this is a graph. On the CPU it calls the function again: its host scalars (grid, padded sizes) were bound at capture,
    so what it reads is the same.
    """

    def __init__(self, function: Callable[[], object], device: str, eager: bool = False) -> None:
        self._function, self._device = function, device
        self._graph: Any = None
        if device != "cuda" or eager:
            function()
            return
        import torch

        cuda: Any = torch.cuda
        side = cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            function()  # compiles kernels and allocates workspaces; neither may happen under capture
        torch.cuda.current_stream().wait_stream(side)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            function()

    def replay(self) -> None:
        """Runs the captured work and waits for it."""
        if self._graph is None:
            self._function()
        else:
            self._graph.replay()
        if self._device == "cuda":
            import torch

            torch.cuda.synchronize()


class Bench:
    """Device, seed and report of one scenario run.

    `quick` asks for the smallest set of cases that still varies every dimension; `eager` forbids capture (a sanitizer switches the caching
    allocator off, without which nothing can be allocated under capture).
    """

    def __init__(self, device: str, seed: int, quick: bool = False, eager: bool = False, extents: list[int] | None = None) -> None:
        self.device, self.seed, self.quick, self.eager = device, seed, quick, eager
        #: (requests before, live, padded) to run instead of the scenario's own batches
        self.extents = extents
        self.observations: list[Observation] = []
        self.notes: list[str] = []
        self.seconds: dict[str, float] = {}

    def capture(self, function: Callable[[], object]) -> Replay:
        """Captures `function`; on a CUDA device it runs twice here (warm-up and capture)."""
        return Replay(function, self.device, self.eager)

    def generator(self, extra: int = 0) -> Any:
        """A seeded torch generator on the CPU (the same numbers on every device)."""
        import torch

        return torch.Generator().manual_seed(self.seed * 1000 + extra)

    def report(
        self,
        case: str,
        variant: str,
        *,
        live: int,
        padded: int,
        unit: str,
        bad: list[int],
        values: list[str],
        live_exact: bool,
        text: str,
        buffer: str = "",
    ) -> None:
        """One schedule with one variant: the padded lanes with a fault (empty: none) and whether live lanes equal the reference."""
        self.observations.append(
            Observation(
                case=case,
                variant=variant,
                live=live,
                padded=padded,
                unit=unit,
                fault=bool(bad),
                lanes=bad,
                values=values[:8],
                live_exact=live_exact,
                text=text,
                buffer=buffer,
            )
        )

    def timed(self, name: str, function: Callable[[], Any]) -> Any:
        """Runs `function`, adding its wall time in seconds to what is recorded under `name`."""
        started = time.perf_counter()
        result = function()
        self.seconds[name] = round(self.seconds.get(name, 0.0) + time.perf_counter() - started, 3)
        return result
