"""How long graphlint takes and how much memory it needs, measured from outside as a user would see it."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench.checker import CheckError, command, environment

HOOK_FILE = {"vllm": "vllm/v1/worker/gpu/block_table.py", "sglang": "sglang/srt/speculative/eagle_worker_common.py"}
SAMPLE_SECONDS = 0.02


class Timing(msgspec.Struct, frozen=True):
    """One thing measured: median, best and worst wall time in seconds, peak memory of all its processes in MiB."""

    what: str
    median: float
    best: float
    worst: float
    peak_mib: float
    runs: int


class Run(msgspec.Struct, frozen=True):
    """One run of a command."""

    seconds: float
    peak_mib: float


def measure(package: Path, runs: int = 3) -> list[Timing]:
    """Cold, warm and one-file runs on a package, and the bare start of the command. A cold run begins without any cache.

    The parser alone is timed beside them: what it takes tells how fast the machine is.
    """
    check = ("check", package.name, "--exit-zero", "--output-format", "json")
    rows = []
    with tempfile.TemporaryDirectory(prefix="graphlint-timing-") as scratch:
        caches = [Path(scratch) / f"cache-{number}" for number in range(runs)]
        rows.append(_summary("cold", [timed(check, package.parent, cache) for cache in caches]))
        warm = caches[-1]
        rows.append(_summary("warm", [timed(check, package.parent, warm) for _ in range(runs)]))
        one = ("check", HOOK_FILE[package.name], "--exit-zero")
        if (package.parent / one[1]).is_file():
            timed(one, package.parent, warm)
            rows.append(_summary("one file, warm", [timed(one, package.parent, warm) for _ in range(runs)]))
        parsing = [parsing_seconds(package) for _ in range(runs)]
        rows.append(_summary("(ast.parse of every file)", [Run(seconds, 0.0) for seconds in parsing]))
        rows.append(_summary("--version", [timed(("--version",), package.parent, warm) for _ in range(runs)]))
    return rows


_PARSE = """
import ast, pathlib, sys, warnings
warnings.simplefilter("ignore")
for path in pathlib.Path(sys.argv[1]).rglob("*.py"):
    try:
        ast.parse(path.read_bytes())
    except SyntaxError:
        pass
"""


def parsing_seconds(package: Path) -> float:
    """Wall time of `ast.parse` over every file of a package, in a process of its own: the unit that makes machines comparable."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", _PARSE, str(package)], check=True)
    return time.perf_counter() - start


def timed(arguments: Sequence[str], folder: Path, cache: Path) -> Run:
    """Run graphlint with its cache in `cache`; CheckError when it fails. Memory is sampled where /proc is there, else 0."""
    cache.mkdir(parents=True, exist_ok=True)
    env = {**environment(), "XDG_CACHE_HOME": str(cache), "GRAPHLINT_CACHE_DIR": str(cache)}
    start = time.perf_counter()
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen([*command(), *arguments], cwd=folder, env=env, stdout=subprocess.DEVNULL, stderr=errors)
        peak = 0.0
        while process.poll() is None:
            peak = max(peak, tree_mib(process.pid))
            try:
                process.wait(SAMPLE_SECONDS)
            except subprocess.TimeoutExpired:
                continue
        seconds = time.perf_counter() - start
        if process.returncode:
            errors.seek(0)
            said = errors.read().decode(errors="replace")[-1000:]
            raise CheckError(f"graphlint {' '.join(arguments)} ended with {process.returncode}: {said}")
    return Run(seconds, peak)


def tree_mib(pid: int) -> float:
    """Proportional set size of a process and its descendants, in MiB."""
    total = 0.0
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1]) / 1024
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                total += tree_mib(int(child))
    except (OSError, ValueError):
        return total
    return total


def _summary(what: str, runs: Sequence[Run]) -> Timing:
    seconds = [run.seconds for run in runs]
    return Timing(
        what=what, median=statistics.median(seconds), best=min(seconds), worst=max(seconds),
        peak_mib=max(run.peak_mib for run in runs), runs=len(runs),
    )
