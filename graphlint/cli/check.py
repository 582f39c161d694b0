"""`graphlint check`."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from graphlint import report as formats

if TYPE_CHECKING:
    from graphlint.runner import Outcome
    from graphlint.settings import CheckOptions
    from graphlint.source.files import SourceFile

EPILOG = """\b
Examples:
  graphlint check vllm/
  graphlint check --select GL2,GL301 --ignore GL208 vllm/v1
  graphlint check --output-format text --output-format json=findings.json vllm/
  graphlint check --min-confidence low --statistics vllm/
  graphlint check --stdin-filename vllm/v1/worker/foo.py - < foo.py

\b
Exit status:
  0  nothing at or above the failing severity (or --exit-zero)
  1  findings at or above it: warnings and errors, or what --severity says
  2  usage error, a path that does not exist, or something that could not be checked

To silence one line:  `# graphlint: ignore[GL201] reason`  on it, or alone on the line above."""


class FormatType(click.ParamType):
    """FORMAT or FORMAT=FILE."""

    name = "FORMAT[=FILE]"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str | None]:
        """(format, file or None for standard output)."""
        if isinstance(value, tuple):
            return value
        name, sign, file = str(value).partition("=")
        known = formats.available()
        if name not in known:
            self.fail(f"unknown format {name!r}; choose from {', '.join(known)}", param, ctx)
        if sign and not file:
            self.fail(f"{value!r} names no file", param, ctx)
        return name, file or None


def _split(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Options that take a comma-separated list and may be repeated."""
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())


@click.command("check", epilog=EPILOG)
@click.argument("paths", nargs=-1, metavar="[PATHS]...")
@click.option("--select", multiple=True, callback=_split, metavar="RULES", help="Only these rules: ids, family prefixes (GL2), names or ALL.")
@click.option("--ignore", multiple=True, callback=_split, metavar="RULES", help="All rules but these.")
@click.option(
    "--severity", type=click.Choice(["info", "warning", "error"]),
    help="Report nothing milder, and fail at this severity. Without it: report all, fail at warnings.",
)
@click.option(
    "--min-confidence", type=click.Choice(["low", "medium", "high"]), default="medium", show_default=True,
    help="Report nothing less sure than this.",
)
@click.option(
    "--output-format", "outputs", type=FormatType(), multiple=True, metavar="FORMAT[=FILE]",
    help=f"How to report, and where; may be repeated. Formats: {', '.join(formats.available())}.  [default: text]",
)
@click.option("--exit-zero", is_flag=True, help="Exit with 0 whatever the check finds.")
@click.option("--statistics", is_flag=True, help="Add a table of how often each rule reported.")
@click.option("--engine", default="auto", show_default=True, metavar="NAME", help="Vocabulary to read the code with: auto, vllm, sglang, ...")
@click.option("--jobs", "-j", type=click.IntRange(min=0), default=0, help="Processes to parse with.  [default: one a core]")
@click.option("--no-cache", is_flag=True, help="Neither use nor write the cache of facts.")
@click.option("--stdin-filename", metavar="PATH", help="Read this file's text from standard input (PATHS may be `-`).")
@click.pass_context
def command(
    ctx: click.Context, /, paths: tuple[str, ...], outputs: tuple[tuple[str, str | None], ...], exit_zero: bool, statistics: bool,
    stdin_filename: str | None, no_cache: bool, **options: object,
) -> None:
    """Find CUDA-graph padding bugs in the Python files at or below PATHS (default: the current folder).

    Folders are searched for .py files that git would not ignore; files are taken as they are.
    """
    from graphlint.cli.progress import Progress
    from graphlint.finding import RunError
    from graphlint.registry import PackError
    from graphlint.runner import run_check
    from graphlint.settings import CheckOptions

    chosen = CheckOptions(cache=not no_cache, **options)  # type: ignore[arg-type]
    given = _standard_input(stdin_filename, paths)
    targets = [path for path in paths if path != "-"] or ([] if given else ["."])
    try:
        with Progress() as progress:
            outcome = run_check(targets, chosen, given=given, progress=progress)
    except KeyError as error:
        raise click.UsageError(str(error.args[0]), ctx) from None
    except PackError as error:
        raise click.UsageError(str(error), ctx) from None
    for path in outcome.discovery.missing:
        outcome.report.errors.append(RunError(path, "io", "no such file or folder"))
    if not outcome.report.stats.files and not outcome.discovery.missing:
        for path in outcome.discovery.empty:
            outcome.report.errors.append(RunError(path, "io", "no Python file found here (hidden, git-ignored and virtual-environment folders are skipped)"))
    _write(ctx, outcome, chosen, outputs or (("text", None),), statistics)
    if exit_zero:
        ctx.exit(0)
    ctx.exit(2 if outcome.report.errors else 1 if outcome.fails(chosen) else 0)


def _standard_input(name: str | None, paths: tuple[str, ...]) -> list[SourceFile]:
    from graphlint.source.discovery import display_path
    from graphlint.source.files import SourceFile

    if name is None and "-" not in paths:
        return []
    return [SourceFile(display_path(name or "<stdin>", os.getcwd()), sys.stdin.buffer.read())]


def _write(
    ctx: click.Context, outcome: Outcome, options: CheckOptions, outputs: tuple[tuple[str, str | None], ...], statistics: bool
) -> None:
    """Render each output; errors go to standard error whatever the format, so that nobody misses them."""
    for error in outcome.report.errors:
        place = f"{error.path}:{error.line}: " if error.line and error.path else f"{error.path}: " if error.path else ""
        click.echo(f"{click.style('error', fg='red', bold=True)}: {place}{error.message}", err=True)
    plain_stdout = True
    for name, file in outputs:
        module = formats.load(name)
        if file is None:
            plain_stdout = plain_stdout and module.FOR_PEOPLE
            color = module.FOR_PEOPLE and _colour(sys.stdout.isatty())
            click.echo(module.render(outcome, color=color), nl=False, color=color or None)
            continue
        try:
            with open(file, "w", encoding="utf-8", newline="\n") as out:
                out.write(module.render(outcome, color=False))
        except OSError as error:
            raise click.UsageError(f"cannot write {file}: {error.strerror}", ctx) from None
    if statistics:
        from graphlint.report.statistics import render

        click.echo(render(outcome), nl=False, err=not plain_stdout)


def _colour(terminal: bool) -> bool:
    """Colour on a terminal only; NO_COLOR and FORCE_COLOR (no-color.org, force-color.org) decide otherwise."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (terminal and os.environ.get("TERM") != "dumb")
