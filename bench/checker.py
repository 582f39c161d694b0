"""Runs `graphlint check` on a tree as a user would, and gives back its JSON report."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import msgspec

from bench.data import BENCH
from bench.releases import Release, package_dir
from graphlint.finding import Finding, Report


class CheckError(Exception):
    """graphlint did not do its work; the message holds what it said."""


def run_check(package: Path, *options: str, stdin: bytes | None = None, timeout: float = 900) -> Report:
    """The report on one package folder. Paths in it are relative to the folder that holds the package: `vllm/v1/...`.

    CheckError when the command fails, is not schema 1, or could not handle a file of the tree for a reason of its own.
    """
    return decode(run_raw(package, "--output-format", "json", *options, stdin=stdin, timeout=timeout), package)


def command() -> list[str]:
    """The command to measure: $GRAPHLINT, or this checkout's graphlint."""
    return shlex.split(os.environ.get("GRAPHLINT", "")) or [sys.executable, "-m", "graphlint"]


def run_raw(package: Path, *options: str, stdin: bytes | None = None, timeout: float = 900) -> bytes:
    """Standard output of `graphlint check PACKAGE --exit-zero`, run beside the package so that paths come out relative."""
    arguments = [*command(), "check", package.name, "--exit-zero", *options]
    done = subprocess.run(
        arguments, cwd=package.parent, env=environment(), input=stdin or b"", capture_output=True, check=False, timeout=timeout
    )
    if done.returncode:
        said = done.stderr.decode(errors="replace")[-2000:]
        raise CheckError(f"graphlint check {package} ended with {done.returncode}: {said}")
    return done.stdout


def environment() -> dict[str, str]:
    """The environment of a run: this checkout's graphlint, wherever the command is started."""
    root = str(BENCH.parent)
    known = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{known}" if known else root}


def decode(text: bytes, package: Path) -> Report:
    """A JSON report with its paths made relative to the folder that holds the package."""
    raw = msgspec.json.decode(text)
    if raw.get("schema") != 1:
        raise CheckError(f"graphlint check {package} answers with schema {raw.get('schema')!r}, not 1")
    report = msgspec.convert(raw, Report)
    if not report.stats.files:
        raise CheckError(f"graphlint check {package} found no Python file there; does a .gitignore above hide the folder?")
    broken = [error for error in report.errors if error.kind in ("internal", "rule")]
    if broken:
        what = f"{broken[0].path}: {broken[0].message}".removeprefix(": ")
        raise CheckError(f"graphlint check {package}: {what} ({len(broken)} such errors)")
    for finding in report.findings:
        finding.path = relative(finding.path, package)
    return report


def relative(path: str, package: Path) -> str:
    """`path` from the package on: `.../vllm-0.33.0/vllm/v1/x.py` and `v1/x.py` inside `vllm/` become `vllm/v1/x.py`."""
    clean = path.replace(os.sep, "/")
    if os.path.isabs(path):
        for base in (package.parent, package.parent.resolve()):
            if clean.startswith(f"{base.as_posix()}/"):
                return clean[len(base.as_posix()) + 1 :]
    return clean if clean.startswith(f"{package.name}/") else f"{package.name}/{clean}"


class Checker:
    """Checks each release once in its life."""

    def __init__(self, *, download: bool = True) -> None:
        self.download = download
        self.reports: dict[Release, Report] = {}

    def report(self, release: Release) -> Report:
        """The report on a release's package."""
        if release not in self.reports:
            self.reports[release] = run_check(package_dir(release, download=self.download))
        return self.reports[release]

    def findings(self, release: Release) -> list[Finding]:
        """What a user sees by default on that release."""
        return self.report(release).findings
