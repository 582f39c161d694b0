"""`graphlint check`."""

from __future__ import annotations

import difflib
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from graphlint import report as formats
from graphlint.cli.options import chosen, running, selection
from graphlint.report.summary import counted

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from graphlint.finding import Grid
    from graphlint.runner import Outcome
    from graphlint.source.files import SourceFile

EPILOG = """\b
Examples:
  graphlint check vllm/
  graphlint check --select GL2,GL301 --ignore GL208 vllm/v1
  graphlint check --output-format text --output-format json=findings.json vllm/
  graphlint check --min-confidence low --statistics vllm/
  graphlint check --output-format sarif=out.sarif,html=out.html,text vllm/
  graphlint check --diff-base origin/main      only what a branch brought in
  graphlint check --baseline graphlint-baseline.txt vllm/
  graphlint check --stdin-filename vllm/v1/worker/foo.py - < foo.py

\b
Exit status:
  0  nothing at or above the failing severity (or --exit-zero)
  1  findings at or above it: warnings and errors, or what --severity says
  2  usage error, a path that does not exist, or something that could not be checked

To silence one line:  `# graphlint: ignore[GL201] reason`  on it, or alone on the line above."""


class FormatType(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.2 only
    """FORMAT or FORMAT=FILE, or several of these with commas between them."""

    name = "FORMAT[=FILE]"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> list[tuple[str, str | None]]:
        """(format, file or None for standard output) of each."""
        if isinstance(value, list):
            return value
        known = formats.available()
        # a comma that no format follows belongs to the name of a file
        return [self._one(part, known, param, ctx) for part in re.split(rf",(?=(?:{'|'.join(known)})(?:[=,]|$))", str(value))]

    def _one(self, value: str, known: list[str], param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str | None]:
        name, sign, file = value.partition("=")
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"choose from {', '.join(known)}"
            self.fail(f"unknown format {name!r}; {hint}", param, ctx)
        if sign and not file:
            self.fail(f"{value!r} names no file", param, ctx)
        return name, file or None

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Names of formats."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(name) for name in formats.available() if name.startswith(incomplete)]


@click.command("check", epilog=EPILOG)
@click.argument("paths", nargs=-1, metavar="[PATHS]...")
@selection
@click.option(
    "--output-format", "outputs", type=FormatType(), multiple=True, metavar="FORMAT[=FILE]",
    help=f"How to report, and where; may be repeated. Formats: {', '.join(formats.available())}.  [default: text]",
)
@click.option("--exit-zero", is_flag=True, help="Exit with 0 whatever the check finds or cannot read.")
@click.option("--statistics", is_flag=True, help="Add a table of how often each rule reported.")
@click.option("--baseline", type=click.Path(path_type=Path), metavar="FILE", help="Do not report the findings listed there.")
@click.option(
    "--stale-baseline", type=click.Choice(["auto", "shrink", "fail", "keep"]), default="auto", show_default=True,
    help="Entries of the baseline whose finding is gone: remove them, fail, or leave them. auto: fail where $CI is set, else remove.",
)
@click.option("--diff-base", metavar="REV", help="Report only findings that touch a line changed since this git revision.")
@click.option("--no-context", "context", flag_value=False, default=None,
              help="Where single files are named, look at them alone: do not read the rest of their project.")
@click.option("--fix", "mend", is_flag=True, help="Apply the fixes that cannot change live lanes, and report what is left.")
@click.option("--diff", is_flag=True, help="Show those fixes as a unified diff instead, and write nothing.")
@click.option("--unsafe-fixes", is_flag=True, help="With --fix or --diff: also fixes that change what runs.")
@click.option("--confirm", is_flag=True, help="Run the kernels of findings (see `graphlint validate`) and be as sure as that shows.")
@running
@click.option("--stdin-filename", metavar="PATH", help="Read this file's text from standard input (PATHS may be `-`).")
@click.pass_context
def command(
    ctx: click.Context, /, paths: tuple[str, ...], outputs: tuple[list[tuple[str, str | None]], ...], exit_zero: bool, statistics: bool,
    stdin_filename: str | None, stale_baseline: str, mend: bool, diff: bool, unsafe_fixes: bool, confirm: bool,
    **given_options: object,
) -> None:
    """Find CUDA-graph padding bugs in the Python files at or below PATHS (default: the current folder).

    Folders are searched for .py files that git would not ignore; files are taken as they are. A fault lies between files: where single
    files are named, the rest of their project is read too (from the cache, as far as it has not changed), but not reported on.
    """
    from graphlint.baseline.file import BaselineError
    from graphlint.changes import ChangesError
    from graphlint.cli.progress import Progress
    from graphlint.finding import RunError
    from graphlint.registry import PackError, UnknownRule
    from graphlint.runner import run_check
    from graphlint.settings import ConfigError

    try:
        options = chosen(ctx, given_options)
        given = _standard_input(stdin_filename, paths)
        targets = [path for path in paths if path != "-"] or ([] if given else ["."])
        with Progress() as progress:
            outcome = run_check(targets, options, given=given, progress=progress)
        if outcome.report.findings:
            from graphlint.fix import attach

            attach(outcome.report.findings, outcome.sources.lines)
            if mend or diff:
                if given:
                    raise click.UsageError("--fix and --diff need files on disk", ctx)
                from graphlint.cli.fixing import mend as mend_all

                outcome = mend_all(outcome, targets, options, unsafe=unsafe_fixes, only_show=diff)
            if confirm:
                from graphlint.cli.probing import confirm_confidence

                outcome.proofs = confirm_confidence(outcome.report.findings)
                outcome.keep_sure(options.min_confidence)
        if diff:
            ctx.exit(0 if exit_zero else 2 if outcome.report.errors else 1 if outcome.fails() else 0)
    except (BaselineError, ChangesError, ConfigError, PackError, UnknownRule) as error:
        raise click.UsageError(str(error), ctx) from None
    nothing_there = bool(paths) and not outcome.discovery.files and not given and not outcome.configured
    if nothing_there:
        message = "no Python file found here (hidden, git-ignored and virtual-environment folders are skipped)"
        outcome.report.errors.extend(RunError(path, "io", message) for path in outcome.discovery.empty)
    chosen_outputs = [one for several in outputs for one in several] or [("text", None)]
    if any(name == "html" for name, _ in chosen_outputs):
        outcome.grids = _support(targets)
    _write(ctx, outcome, chosen_outputs, statistics)
    fresh = _tend_baseline(ctx, outcome, stale_baseline, on_disk=not given)
    if outcome.discovery.missing or nothing_there:
        ctx.exit(2)
    if exit_zero:
        ctx.exit(0)
    ctx.exit(2 if outcome.report.errors else 1 if outcome.fails() or not fresh else 0)


def _tend_baseline(ctx: click.Context, outcome: Outcome, policy: str, *, on_disk: bool) -> bool:
    """Deal with entries whose finding is gone; False if the run must fail for them."""
    matched = outcome.baseline
    if matched is None or not matched.stale or policy == "keep" or not on_disk:
        return True
    file = os.path.relpath(matched.file)
    count = counted(len(matched.stale), "finding")
    if policy == "fail" or (policy == "auto" and os.environ.get("CI", "").lower() not in ("", "0", "false")):
        for entry in matched.stale:
            click.echo(f"stale: {entry.path}: {entry.rule} {entry.symbol} {entry.buffer}".rstrip(), err=True)
        click.echo(f"error: {file} lists {count} gone from the code; run `graphlint baseline prune` and commit it", err=True)
        return False
    from graphlint.baseline.file import BaselineError, write

    try:
        write(matched.file, matched.current)
    except BaselineError as error:
        raise click.UsageError(str(error), ctx) from None
    click.echo(f"{file}: removed {count}, gone from the code", err=True)
    return True


def _support(targets: list[str]) -> list[Grid]:
    """The graph support of the attention backends of each checkout among `targets`, for a page."""
    from graphlint.config.matrix import UnknownRelease, load_matrix
    from graphlint.config.matrix_render import grid

    def one(target: str) -> list[Grid]:
        try:
            return [grid(load_matrix(target))]
        except UnknownRelease:
            return []

    return [table for target in targets if os.path.isdir(target) for table in one(target)]


def _standard_input(name: str | None, paths: tuple[str, ...]) -> list[SourceFile]:
    from graphlint.source.discovery import display_path
    from graphlint.source.files import SourceFile

    if name is None and "-" not in paths:
        return []
    return [SourceFile(display_path(name or "<stdin>", os.getcwd()), sys.stdin.buffer.read())]


def _write(
    ctx: click.Context, outcome: Outcome, outputs: list[tuple[str, str | None]], statistics: bool
) -> None:
    """Render each output; errors go to standard error whatever the format, so that nobody misses them."""
    for error in outcome.report.errors:
        place = f"{error.path}:{error.line}: " if error.line and error.path else f"{error.path}: " if error.path else ""
        head = click.style("error", fg="red", bold=True) if _colour(sys.stderr.isatty()) else "error"
        click.echo(f"{head}: {place}{error.message}", err=True, color=True)
    for_people = True
    for name, file in outputs:
        module = formats.load(name)
        if file is None:
            for_people = for_people and module.FOR_PEOPLE
            text = module.render(outcome, color=module.FOR_PEOPLE and _colour(sys.stdout.isatty()))
            click.echo(text, nl=False, color=True)  # the colours are there on purpose: click must not strip them
            continue
        try:
            with open(file, "w", encoding="utf-8", newline="\n") as out:
                out.write(module.render(outcome, color=False))
        except OSError as error:
            raise click.UsageError(f"cannot write {file}: {error.strerror}", ctx) from None
    if statistics:
        from graphlint.report.statistics import render

        click.echo(render(outcome), nl=False, err=not for_people)


def _colour(terminal: bool) -> bool:
    """Colour on a terminal only; NO_COLOR and FORCE_COLOR (no-color.org, force-color.org) decide otherwise."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (terminal and os.environ.get("TERM") != "dumb")
