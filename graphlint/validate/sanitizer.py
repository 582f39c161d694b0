"""compute-sanitizer around a child: the command, and what its report says."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

#: one allocation a tensor: memcheck sees an overrun only where the caching allocator does not hand out one big block
ENVIRONMENT = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}


def find() -> str | None:
    """Path of compute-sanitizer, or None."""
    found = shutil.which("compute-sanitizer")
    return found or next((str(path) for path in sorted(Path("/usr/local").glob("cuda*/bin/compute-sanitizer"), reverse=True)), None)


def command(tool: str) -> tuple[str, ...]:
    """Prefix that runs a child under `tool` (memcheck, initcheck, racecheck); empty when compute-sanitizer is not there."""
    path = find()
    if path is None:
        return ()
    return (path, "--tool", tool, "--target-processes", "application-only", "--print-limit", "20", "--error-exitcode", "0")


def report(output: str) -> str:
    """The lines of a sanitizer report that name errors, kernels and source lines; "" without errors."""
    lines = [line.removeprefix("=========").strip() for line in output.splitlines() if line.startswith("=========")]
    summary = next((line for line in lines if line.startswith("ERROR SUMMARY")), "")
    if not summary or re.match(r"ERROR SUMMARY: 0 errors", summary):
        return ""
    telling = [line for line in lines if re.search(r"Invalid|Uninitialized|at .*\+0x|Address|hazard|device-side|Program hit", line)]
    return "\n".join([summary, *telling[:12]])
