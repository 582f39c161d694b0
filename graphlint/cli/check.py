"""`graphlint check`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from graphlint import report as formats

if TYPE_CHECKING:
    from graphlint.runner import Outcome
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


class FormatType(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.2 only
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
@click.option("--select", multiple=True, callback=_split, metavar="RULES", help="Only these: ids, family prefixes (GL2), names or ALL.")
@click.option("--ignore", multiple=True, callback=_split, metavar="RULES", help="All rules but these.")
@click.option(
    "--severity", type=click.Choice(["info", "warning", "error"]),
    help="Report nothing milder, and fail at this severity. Without it: report all, fail at warnings.",
)
@click.option(
    "--min-confidence", type=click.Choice(["low", "medium", "high"]), help="Report nothing less sure than this.  [default: medium]",
)
@click.option(
    "--output-format", "outputs", type=FormatType(), multiple=True, metavar="FORMAT[=FILE]",
    help=f"How to report, and where; may be repeated. Formats: {', '.join(formats.available())}.  [default: text]",
)
@click.option("--exit-zero", is_flag=True, help="Exit with 0 whatever the check finds or cannot read.")
@click.option("--statistics", is_flag=True, help="Add a table of how often each rule reported.")
@click.option("--engine", metavar="NAME", help="Vocabulary to read the code with: auto, vllm, sglang, ...  [default: auto]")
@click.option("--jobs", "-j", type=click.IntRange(min=1), metavar="N", help="Processes to parse with.  [default: one a core]")
@click.option("--no-cache", is_flag=True, help="Neither use nor write the cache of facts.")
@click.option("--config", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
              help="Configuration to use, instead of the nearest graphlint.toml or pyproject.toml with [tool.graphlint].")
@click.option("--no-config", is_flag=True, help="Use no configuration file.")
@click.option("--stdin-filename", metavar="PATH", help="Read this file's text from standard input (PATHS may be `-`).")
@click.pass_context
def command(
    ctx: click.Context, /, paths: tuple[str, ...], outputs: tuple[tuple[str, str | None], ...], exit_zero: bool, statistics: bool,
    stdin_filename: str | None, no_cache: bool, config: Path | None, no_config: bool, **given_options: object,
) -> None:
    """Find CUDA-graph padding bugs in the Python files at or below PATHS (default: the current folder).

    Folders are searched for .py files that git would not ignore; files are taken as they are.
    """
    from graphlint.cli.progress import Progress
    from graphlint.finding import RunError
    from graphlint.registry import PackError, UnknownRule
    from graphlint.runner import run_check
    from graphlint.settings import ConfigError, find_config, options

    if config and no_config:
        raise click.UsageError("--config and --no-config exclude each other", ctx)
    try:
        file = None if no_config else config or find_config(Path.cwd())
        # an option that was not given leaves the word to the configuration
        chosen = options(file, {"cache": not no_cache, **{key: value for key, value in given_options.items() if value != ()}})
        given = _standard_input(stdin_filename, paths)
        targets = [path for path in paths if path != "-"] or ([] if given else ["."])
        with Progress() as progress:
            outcome = run_check(targets, chosen, given=given, progress=progress)
    except (ConfigError, PackError, UnknownRule) as error:
        raise click.UsageError(str(error), ctx) from None
    nothing_there = bool(paths) and not outcome.discovery.files and not given
    if nothing_there:
        message = "no Python file found here (hidden, git-ignored and virtual-environment folders are skipped)"
        outcome.report.errors.extend(RunError(path, "io", message) for path in outcome.discovery.empty)
    _write(ctx, outcome, outputs or (("text", None),), statistics)
    if outcome.discovery.missing or nothing_there:
        ctx.exit(2)
    if exit_zero:
        ctx.exit(0)
    ctx.exit(2 if outcome.report.errors else 1 if outcome.fails() else 0)


def _standard_input(name: str | None, paths: tuple[str, ...]) -> list[SourceFile]:
    from graphlint.source.discovery import display_path
    from graphlint.source.files import SourceFile

    if name is None and "-" not in paths:
        return []
    return [SourceFile(display_path(name or "<stdin>", os.getcwd()), sys.stdin.buffer.read())]


def _write(
    ctx: click.Context, outcome: Outcome, outputs: tuple[tuple[str, str | None], ...], statistics: bool
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
