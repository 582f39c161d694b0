"""`graphlint baseline`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from graphlint.cli.options import chosen, running, selection
from graphlint.report.summary import counted

if TYPE_CHECKING:
    from graphlint.baseline.file import Entry
    from graphlint.baseline.match import Matched
    from graphlint.runner import Outcome

EPILOG = """\b
How to adopt graphlint on code that has findings already:
  graphlint baseline create vllm/              write graphlint-baseline.txt; commit it
  graphlint check --baseline graphlint-baseline.txt vllm/
  (or  baseline = "graphlint-baseline.txt"  in the configuration)

Entries match by content, not by line: moving code, renaming its neighbours or formatting it keeps them. A finding that is mended leaves
the baseline with the next `graphlint check` of the whole project; where $CI is set, that check fails instead, so that the smaller file
gets committed."""


@click.group("baseline", epilog=EPILOG)
def command() -> None:
    """Record today's findings, so that only new ones are reported."""


def _shared(function: Any) -> Any:
    file = click.option(
        "--baseline", "file", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
        help="The baseline.  [default: the configuration's, else graphlint-baseline.txt]",
    )
    paths = click.argument("paths", nargs=-1, metavar="[PATHS]...")
    return paths(file(selection(running(click.pass_context(function)))))


@command.command("create")
@click.option("--force", is_flag=True, help="Replace a baseline that exists.")
@_shared
def create(ctx: click.Context, /, paths: tuple[str, ...], file: Path | None, force: bool, **given: Any) -> None:
    """Write a baseline of everything `graphlint check PATHS` reports."""
    from graphlint.baseline.file import entry_of

    target, outcome, configured = _run(ctx, paths, file, given, replaces=True, may_exist=force)
    entries = [entry_of(finding, outcome.sources, target) for finding in outcome.report.findings]
    _write(ctx, target, entries)
    name = os.path.relpath(target)
    click.echo(f"{name}: {counted(len(entries), 'finding')}")
    if entries and not configured:
        click.echo(f'To use it: graphlint check --baseline {name}, or baseline = "{name}" in the configuration.')
    _exit(ctx, outcome, 0)


@command.command("update")
@_shared
def update(ctx: click.Context, /, paths: tuple[str, ...], file: Path | None, **given: Any) -> None:
    """Add new findings and remove those that no longer occur."""
    from graphlint.baseline.file import entry_of

    target, outcome, _ = _run(ctx, paths, file, given)
    matched = _matched(outcome)
    added = [entry_of(finding, outcome.sources, target) for finding in outcome.report.findings]
    _write(ctx, target, [*matched.current, *added])
    click.echo(f"{os.path.relpath(target)}: {len(added)} added, {len(matched.stale)} removed, {matched.known} kept{_unjudged(matched)}")
    _exit(ctx, outcome, 0)


@command.command("prune")
@_shared
def prune(ctx: click.Context, /, paths: tuple[str, ...], file: Path | None, **given: Any) -> None:
    """Remove findings that no longer occur; add nothing."""
    target, outcome, _ = _run(ctx, paths, file, given)
    matched = _matched(outcome)
    _write(ctx, target, matched.current)
    click.echo(f"{os.path.relpath(target)}: {len(matched.stale)} removed, {matched.known} kept{_unjudged(matched)}")
    _exit(ctx, outcome, 0)


@command.command("check")
@_shared
def check(ctx: click.Context, /, paths: tuple[str, ...], file: Path | None, **given: Any) -> None:
    """Fail (1) if the baseline lists findings that no longer occur, or lacks some that do. Changes nothing."""
    target, outcome, _ = _run(ctx, paths, file, given)
    matched = _matched(outcome)
    for finding in outcome.report.findings:
        click.echo(f"new:   {finding.path}:{finding.line}: {finding.rule} {finding.message}")
    for entry in matched.stale:
        click.echo(f"stale: {entry.path}: {entry.rule} {entry.symbol} {entry.buffer}".rstrip())
    new = len(outcome.report.findings)
    click.echo(f"{os.path.relpath(target)}: {new} new, {len(matched.stale)} stale, {matched.known} as listed{_unjudged(matched)}")
    _exit(ctx, outcome, 1 if new or matched.stale else 0)


def _run(
    ctx: click.Context, paths: tuple[str, ...], file: Path | None, given: dict[str, Any], *, replaces: bool = False,
    may_exist: bool = True,
) -> tuple[Path, Outcome, bool]:
    """The baseline meant, the outcome of a check against it (against none where it is to be replaced), and whether it is configured."""
    import msgspec

    from graphlint.baseline.file import NAME, BaselineError
    from graphlint.cli.progress import Progress
    from graphlint.registry import PackError, UnknownRule
    from graphlint.runner import run_check
    from graphlint.settings import ConfigError

    try:
        options = chosen(ctx, given)
        target = file or options.baseline or (options.root or Path()) / NAME
        if not may_exist and target.exists():
            raise click.UsageError(f"{os.path.relpath(target)} exists; `graphlint baseline update` changes it, --force replaces it", ctx)
        configured = options.baseline == target
        options = msgspec.structs.replace(options, baseline=None if replaces else target)
        with Progress() as progress:
            outcome = run_check(paths or ["."], options, progress=progress)
    except (BaselineError, ConfigError, PackError, UnknownRule) as error:
        raise click.UsageError(str(error), ctx) from None
    for problem in outcome.report.errors:
        place = f"{problem.path}:{problem.line}: " if problem.line else f"{problem.path}: " if problem.path else ""
        click.echo(f"error: {place}{problem.message}", err=True)
    if outcome.discovery.missing:
        ctx.exit(2)
    return target, outcome, configured


def _matched(outcome: Outcome) -> Matched:
    assert outcome.baseline is not None
    return outcome.baseline


def _write(ctx: click.Context, target: Path, entries: list[Entry]) -> None:
    from graphlint.baseline.file import BaselineError, write

    try:
        write(target, entries)
    except BaselineError as error:
        raise click.UsageError(str(error), ctx) from None


def _unjudged(matched: Matched) -> str:
    return f", {len(matched.unjudged)} not looked at" if matched.unjudged else ""


def _exit(ctx: click.Context, outcome: Outcome, status: int) -> None:
    """2 where something could not be checked: the baseline holds what was found, but that may not be all."""
    ctx.exit(2 if outcome.report.errors else status)
