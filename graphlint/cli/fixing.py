"""`graphlint check --fix` and `--diff`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from graphlint.finding import Finding
    from graphlint.runner import Outcome
    from graphlint.settings import CheckOptions


def mend(outcome: Outcome, targets: Sequence[str], options: CheckOptions, *, unsafe: bool, only_show: bool) -> Outcome:
    """Applies the fixes of `outcome`, on disk or as a diff on standard output, and returns what a check finds afterwards.

    With `only_show`, nothing is written and the outcome comes back as it is.
    """
    from graphlint.fix import attach
    from graphlint.fix.rounds import diff, fix_all
    from graphlint.report.summary import counted
    from graphlint.runner import run_check
    from graphlint.source.files import SourceFile

    def check(texts: Mapping[str, str]) -> list[Finding]:
        given = [SourceFile(path, text.encode("utf-8")) for path, text in texts.items()]
        found = run_check(targets, options, given=given)
        attach(found.report.findings, found.sources.lines)
        return found.report.findings

    fixed = fix_all(outcome.report.findings, _read, check, unsafe=unsafe)
    kept_back = sum(
        finding.fix is not None and finding.fix.applicability == "unsafe" for finding in outcome.report.findings
    ) if not unsafe else 0
    if only_show:
        for path, text in sorted(fixed.texts.items()):
            click.echo(diff(path, _read(path), text), nl=False)
        verb = "would fix"
    else:
        for path, text in sorted(fixed.texts.items()):
            _write(path, text)
        verb = "fixed"
    notes = [f"{verb} {counted(len(fixed.done), 'finding')} in {counted(len(fixed.texts), 'file')}"]
    if kept_back:
        notes.append(f"{kept_back} unsafe fix{'es' if kept_back != 1 else ''} left; add --unsafe-fixes")
    if fixed.refused:
        notes.append(f"{len(fixed.refused)} fix{'es' if len(fixed.refused) != 1 else ''} taken back, since the finding stayed")
    click.echo("; ".join(notes), err=True)
    if only_show or not fixed.texts:
        return outcome
    left = run_check(targets, options)
    attach(left.report.findings, left.sources.lines)
    return left


def _write(path: str, text: str) -> None:
    try:
        with open(path, "w", encoding="utf-8", newline="") as out:
            out.write(text)
    except OSError as error:
        raise click.UsageError(f"cannot write {path}: {error.strerror}") from None


def _read(path: str) -> str:
    with open(path, encoding="utf-8", newline="") as file:
        return file.read()
