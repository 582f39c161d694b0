"""`python -m bench.validate`: are findings confirmed when their kernels run, are their fixes verified, is anything confirmed wrongly?

For each release named: the harmful kernel mutants, each finding that the mutant brings about and that names a kernel; then the findings
of the release as it is, beside their triage verdict. Everything runs on the CPU under the limits of `graphlint validate`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec

from bench.bugs import load_bugs
from bench.checker import Checker
from bench.mutants.score import about, key, mutated_findings, select
from bench.mutants.verdicts import verdicts as mutant_verdicts
from bench.releases import Release, package_dir
from bench.text import table
from bench.triage import load_entries
from graphlint.cli.probing import KERNEL
from graphlint.finding import Finding
from graphlint.fix import attach
from graphlint.validate.confirm import confirm, warm_jail
from graphlint.validate.sandbox import Limits
from graphlint.validate.warm import WarmJail


class Shown(msgspec.Struct, frozen=True):
    """One finding that was run. `what` is the mutant or bug, or empty for a release as it is; `judged` its triage verdict."""

    release: str
    what: str
    rule: str
    place: str
    result: str
    fix: str
    reason: str
    seconds: float
    judged: str = ""


def run(finding: Finding, package: Path, warm: WarmJail, spoilt: dict[str, str], release: Release, what: str, judged: str = "") -> Shown:
    """Runs the kernel of a finding whose paths are relative to the folder of the package; `spoilt` are texts that replace files there."""

    def read(path: str) -> str | None:
        if path in spoilt:
            return spoilt[path]
        file = package.parent / path
        return file.read_text(encoding="utf-8") if file.is_file() else None

    start = time.perf_counter()
    verdict = confirm(finding, read, "cpu", Limits(seconds=120), quick=True, warm=warm)
    return Shown(
        str(release), what, finding.rule, f"{finding.path}:{finding.line} {finding.symbol}", verdict.result, verdict.fix, verdict.reason,
        round(time.perf_counter() - start, 1), judged,
    )


def of_mutants(release: Release, checker: Checker, warm: WarmJail) -> Iterator[tuple[str, list[Shown]]]:
    """(mutant, verdicts of what it brought about) for the harmful kernel mutants."""
    package, listed = package_dir(release), mutant_verdicts(release)
    base = {key(finding) for finding in checker.findings(release)}
    for mutant in select(release, kinds=("kernel",))[0]:
        if listed.get(mutant.id) != "harmful":
            continue
        spoilt = {mutant.path: mutant.spoil((package.parent / mutant.path).read_bytes()).decode()}
        new = [finding for finding in mutated_findings(package, mutant) if key(finding) not in base and about(finding, mutant)]
        yield mutant.id, [run(one, package, warm, spoilt, release, mutant.id) for one in new if one.rule in KERNEL]


def of_release(release: Release, checker: Checker, warm: WarmJail) -> Iterator[Shown]:
    """Verdicts of the findings of a release as it is."""
    judged = {entry.fingerprint: entry.verdict for entry in load_entries(release)}
    for finding in checker.findings(release):
        if finding.rule in KERNEL:
            yield run(finding, package_dir(release), warm, {}, release, "", judged.get(finding.fingerprint, "not judged"))


def of_bug(name: str, buffer: str, checker: Checker, warm: WarmJail) -> Iterator[Shown]:
    """Verdicts of the findings about a bug, in its last bad release; where check reports none, of one made from the bug's record."""
    bug = next((one for one in load_bugs() if one.id == name), None)
    if bug is None:
        raise click.BadParameter(f"no bug {name!r}", param_hint="--bug")
    release = Release(bug.project, bug.bad)
    package = package_dir(release)
    found = [one for one in checker.findings(release) if one.rule in KERNEL and one.path == bug.file and one.symbol in bug.symbols]
    for finding in found:
        yield run(finding, package, warm, {}, release, name)
    if not found and buffer:
        lines = (package.parent / bug.file).read_text(encoding="utf-8").split("\n")
        line = next((number for number, text in enumerate(lines, 1) if f"tl.store({buffer}" in text), 0)
        made = Finding(
            rule=bug.rules[0], name="", severity="error", confidence="low", path=bug.file, line=line, symbol=bug.symbols[0],
            message=bug.title, buffer=buffer,
        )
        attach([made], lambda path: lines)
        yield run(made, package, warm, {}, release, f"{name} (check reports nothing there)")


@click.command()
@click.argument("releases", nargs=-1)
@click.option("--bug", "bugs", multiple=True, metavar="ID[:POINTER]",
              help="Also this bug, in its last bad release; POINTER is run where check reports nothing (repeatable).")
@click.option("--mutants/--no-mutants", default=True, help="The harmful kernel mutants of the releases.")
@click.option("--as-is/--no-as-is", default=True, help="The releases themselves.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write the verdicts to this file as well.")
def main(releases: tuple[str, ...], bugs: tuple[str, ...], mutants: bool, as_is: bool, json_file: Path | None) -> None:
    """Run the kernels of findings: python -m bench.validate vllm-0.20.0 vllm-0.33.0 --bug V03 --bug V14."""
    checker, shown, totals = Checker(), [], []

    def tell(one: Shown) -> None:
        shown.append(one)
        judged = f", judged {one.judged}" if one.judged else ""
        said = f"{one.result}, fix {one.fix} ({one.seconds} s){judged}"
        click.echo(f"{one.release} {one.what or 'as it is'}\n  {one.rule} {one.place}: {said}\n    {one.reason}")
        if json_file:
            json_file.write_bytes(msgspec.json.format(msgspec.json.encode(shown)) + b"\n")

    with warm_jail() as warm:
        for release in map(Release.parse, releases):
            reported = confirmed = verified = every = 0
            for _, found in of_mutants(release, checker, warm) if mutants else ():
                every += 1
                reported += bool(found)
                confirmed += any(one.result == "confirmed" for one in found)
                verified += any(one.fix == "verified" for one in found)
                for one in found:
                    tell(one)
            wrong = 0
            for one in of_release(release, checker, warm) if as_is else ():
                tell(one)
                wrong += one.result == "confirmed" and one.judged == "false"
            totals.append((str(release), every, reported, confirmed, verified, wrong))
        for word in bugs:
            name, _, buffer = word.partition(":")
            for one in of_bug(name, buffer, checker, warm):
                tell(one)
    if totals:
        heads = ("release", "harmful kernel mutants", "reported", "confirmed", "fix verified", "wrongly confirmed as it is")
        click.echo(table(heads, totals))


if __name__ == "__main__":
    main()
