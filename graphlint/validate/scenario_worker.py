"""Child side of `graphlint validate --scenario`: loads one module of kernels/ by path and runs it."""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path

import msgspec

from graphlint.validate.bench import Bench
from graphlint.validate.versions import describe


def main(folder: str) -> None:
    """Reads request.json, runs its entry (`run(bench)`; `crash` or `memcheck(bench, variant)`), writes result.json."""
    request = json.loads(Path(folder, "request.json").read_text(encoding="utf-8"))
    spec = importlib.util.spec_from_file_location("graphlint_scenario", request["path"])
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load {request['path']}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    bench = Bench(request["device"], request["seed"], request["quick"], request["eager"], request["extents"])
    variant = () if request["variant"] is None else (request["variant"],)
    getattr(module, request["entry"])(bench, *variant)
    result = {
        "observations": msgspec.to_builtins(bench.observations),
        "notes": bench.notes,
        "timings": bench.seconds,
        **describe(bench.device),
    }
    temporary = Path(folder, "result.json.part")
    temporary.write_text(json.dumps(result), encoding="utf-8")
    os.replace(temporary, Path(folder, "result.json"))
